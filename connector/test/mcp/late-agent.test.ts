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

test("A call begins no other connection where one is not online yet", async () => {
  const make = jest.fn<Make>(async () => agentIn({ status: "reconnecting" }));
  const late = new LateAgent(make);
  expect(await late.connecting()).toBe(await late.connecting());
  expect(make).toHaveBeenCalledTimes(1);
});

test("A call that finds the key file unreadable after the end says so, and the next one tries again", async () => {
  const make = jest.fn(endedThenConnecting);
  const late = new LateAgent(make);
  const first = await late.present();
  make.mockRejectedValueOnce(new RelayError("invalid_key"));
  await expect(late.connecting()).rejects.toMatchObject({ code: "invalid_key" });
  expect((await late.connecting()).queue).toBe(first.queue);
});
