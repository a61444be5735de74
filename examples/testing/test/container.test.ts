import assert from "node:assert/strict";
import { test } from "node:test";
import { Connector } from "agent-relay-connector";
import { AgentRelayContainer } from "agent-relay-testing/container";
import { startAdder } from "../src/adder.ts";

const IMAGE = process.env.AGENT_RELAY_IMAGE ?? "agent-relay/all";

test("adds again when its relay died, and when Redis was away", async () => {
  await using relay = await new AgentRelayContainer(IMAGE).start();
  await using _adder = await startAdder(await relay.agent("adder"));
  await using alice = new Connector(await relay.agent("alice"));
  await alice.start();
  const added = async () => {
    const options = { type: "message.add", waitOnline: 30_000 } as const;
    return (await alice.ask("agent://adder", { numbers: [1, 2, 3] }, options)).payload;
  };
  assert.deepEqual(await added(), { sum: 6 });
  await relay.killPod();
  assert.deepEqual(await added(), { sum: 6 });
  await relay.failRedis();
  await relay.restoreRedis();
  assert.deepEqual(await added(), { sum: 6 });
});
