import { expect, jest, test } from "@jest/globals";
import { RelayError } from "../../src/errors.ts";
import { McpAgent } from "../../src/mcp/agent.ts";
import type { AgentConnection } from "../../src/mcp/agent-connection.ts";
import { LateAgent, type Make } from "../../src/mcp/late-agent.ts";

const lookUps = { presenceOf: async () => ({}), sessionOf: async () => ({}) };
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
