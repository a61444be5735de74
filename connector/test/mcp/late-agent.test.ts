import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { RelayError } from "../../src/errors.ts";
import type { AgentConnection } from "../../src/mcp/agent.ts";
import { LateAgent, type Make, McpAgent } from "../../src/mcp/agent.ts";
import { Call } from "../../src/mcp/calls.ts";
import { askAgent, sendMessage } from "../../src/mcp/messages.ts";
import { myStatus } from "../../src/mcp/status.ts";
import { runTool } from "../../src/mcp/tool.ts";
import type { AskOptions } from "../../src/types.ts";

/** An agent of a server that has no connection yet, or has one no more. */

const lookUps = { presenceOf: async () => ({}), sessionOf: async () => ({}) };
const FIRST_ATTEMPT_MS = 3000;
const AWAY_MS = 8000;
const ONLINE = { status: "online" };
const HI = { to: "agent://bob", message: "hi" };

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

type Told = (state: object) => void;

/** A connection in a state, and from `later.ms` on in another. It gives up as a connector does. */
function connection(state: object, later?: { readonly ms: number; readonly state: object }): AgentConnection {
  const told: Told[] = [];
  const unanswered = (_to: string, _payload: object, { signal, timeoutMs }: AskOptions = {}) => {
    const { promise, reject } = Promise.withResolvers<never>();
    const outcome = is.state === ONLINE ? "unknown" : "refused";
    const refuse = (code: "aborted" | "timeout") => reject(new RelayError(code, { outcome }));
    signal?.addEventListener("abort", () => refuse("aborted"));
    if (timeoutMs !== undefined) setTimeout(() => refuse("timeout"), timeoutMs);
    return promise;
  };
  const on = (event: string, listener: Told) => {
    if (event === "state") told.push(listener);
    return () => {};
  };
  const is = { agent: "agent://alice", state, relayUrl: "ws://relay.example/ws", since: new Date(), isShared: false };
  const become = (other: object) => {
    is.state = other;
    for (const tell of told) tell(other);
  };
  if (later !== undefined) setTimeout(() => become(later.state), later.ms);
  return Object.assign(is, { on, start: async () => {}, send: unanswered, ask: unanswered }) as never;
}

/** @returns the answer that the tool gives after that time, and no sooner. */
async function answer(tool: object, input: object, connector: AgentConnection, ms: number, former?: AgentConnection) {
  const before = former && new McpAgent(former, lookUps);
  const late = new LateAgent(async (former) => former ?? new McpAgent(connector, lookUps, before));
  const call = { signal: new AbortController().signal, call: new Call() };
  let text = "";
  void runTool(tool as Parameters<typeof runTool>[0], input, late, call).then(({ content }) => {
    text = (content.at(-1) as { text: string }).text;
  });
  await jest.advanceTimersByTimeAsync(ms - 1);
  expect(text).toBe("");
  await jest.advanceTimersByTimeAsync(1);
  return JSON.parse(text);
}

test("A model that asks for its status first is told that it is online: the answer waits for the first attempt to connect", async () => {
  const connector = connection({ status: "connecting" }, { ms: FIRST_ATTEMPT_MS - 1, state: ONLINE });
  const { connection: told } = await answer(myStatus, {}, connector, FIRST_ATTEMPT_MS - 1);
  expect(told).toEqual({ status: "online", url: connector.relayUrl, since_iso: expect.any(String) });
});

test("A model that asks for its status is told within 3 s that the relay accepts the connection and says nothing", async () => {
  const { connection: told } = await answer(myStatus, {}, connection({ status: "connecting" }), FIRST_ATTEMPT_MS);
  expect(told).toMatchObject({ status: "connecting", hint: expect.any(String) });
});

test("A model whose question has no reply in time is told that it may have arrived", async () => {
  const late = await answer(askAgent, { ...HI, timeout_seconds: 1 }, connection(ONLINE), 1000);
  expect(late).toMatchObject({ code: "timeout", outcome: "unknown" });
});

describe("A model that wants to send while no relay answers is told why, and nothing is sent:", () => {
  const error = new RelayError("unreachable", { message: "connection refused" });
  const away = { status: "reconnecting", reason: "unreachable", closeCode: 1006, retryInMs: 1, error };
  const told = { code: "unreachable", outcome: "refused", retry: "later" };

  test("within 8 s", async () => {
    const refused = await answer(sendMessage, HI, connection(away), AWAY_MS);
    expect(refused).toMatchObject({ ...told, message: expect.stringContaining("connection refused") });
  });

  test("sooner, when its question gives up first", async () => {
    const refused = await answer(askAgent, { ...HI, timeout_seconds: 1 }, connection(away), 1000);
    expect(refused).toMatchObject({ ...told, message: expect.stringContaining("connection refused") });
  });
});

describe("A model whose agent had a connection that ended is told why, while the next one begins:", () => {
  const error = new RelayError("superseded_elsewhere");
  const told = { code: error.code, outcome: "refused", connection: { status: "connecting", reason: error.code } };

  test.each([
    ["its status, within 3 s", myStatus, {}, FIRST_ATTEMPT_MS, { connection: told.connection }],
    ["what it sends, within 8 s", sendMessage, HI, AWAY_MS, told],
    ["what it asks, when its question gives up first", askAgent, { ...HI, timeout_seconds: 1 }, 1000, told],
  ])("%s", async (_, tool, input, ms, expected) => {
    const [ended, begins] = [connection({ status: "closed", error }), connection({ status: "connecting" })];
    expect(await answer(tool, input, begins, ms, ended)).toMatchObject(expected);
  });
});

const ENDED = { status: "closed", error: new RelayError("bad_signature") };

/** An agent whose connection is in this state. */
function agentIn(state: object, former?: McpAgent): McpAgent {
  const connector = { agent: "agent://alice", state, on: () => () => {}, start: async () => {}, close: async () => {} };
  return new McpAgent(connector as unknown as AgentConnection, lookUps, former);
}

const endedThenConnecting: Make = async (former) => agentIn(former ? { status: "connecting" } : ENDED, former);

test("Calls that come together after a connection has ended begin one other, and each gets it", async () => {
  const make = jest.fn(endedThenConnecting);
  const late = new LateAgent(make);
  const first = await late.present();
  const agents = await Promise.all([late.connecting(), late.connecting(), late.connecting()]);
  expect(make.mock.calls).toEqual([[undefined], [first]]);
  expect(new Set(agents).size).toBe(1);
  expect(agents[0]?.endedBy).toBe(ENDED.error);
});

test("A call begins no other connection where one is not online yet, and its key is the present one", async () => {
  const make = jest.fn<Make>(async (former) => former ?? agentIn({ status: "reconnecting" }));
  const late = new LateAgent(make);
  expect(await late.connecting()).toBe(await late.connecting());
});

test("A connection that still tries with a former key is closed before one with the present key begins", async () => {
  const steps: string[] = [];
  const agents: McpAgent[] = [];
  const late = new LateAgent(async (former) => {
    const agent = agentIn({ status: "reconnecting" }, former);
    const name = `agent ${agents.push(agent)}`;
    agent.connector.start = async () => void steps.push(`${name} starts`);
    agent.connector.close = async () => void steps.push(`${name} is closed`);
    return agent;
  });
  await late.present();
  expect(await late.connecting()).toBe(agents[1]);
  await late.close();
  expect(steps).toEqual(["agent 1 starts", "agent 1 is closed", "agent 2 starts", "agent 2 is closed"]);
});

test("A call asks nothing while the agent is online", async () => {
  const make = jest.fn<Make>(async () => agentIn({ status: "online" }));
  const late = new LateAgent(make);
  await late.connecting();
  await late.connecting();
  expect(make).toHaveBeenCalledTimes(1);
});

test("An agent whose key file became unreadable meanwhile is closed with the server", async () => {
  const former = agentIn({ status: "reconnecting" });
  const close = jest.spyOn(former.connector, "close");
  const make = jest.fn<Make>(async () => former);
  const late = new LateAgent(make);
  await late.present();
  make.mockRejectedValueOnce(new RelayError("invalid_key"));
  await expect(late.connecting()).rejects.toMatchObject({ code: "invalid_key" });
  await late.close();
  expect(close).toHaveBeenCalledTimes(1);
});

test("A call that finds the key file unreadable after the end says so, and the next one tries again", async () => {
  const make = jest.fn(endedThenConnecting);
  const late = new LateAgent(make);
  const first = await late.present();
  make.mockRejectedValueOnce(new RelayError("invalid_key"));
  await expect(late.connecting()).rejects.toMatchObject({ code: "invalid_key" });
  expect((await late.connecting()).queue).toBe(first.queue);
});
