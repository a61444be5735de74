import assert from "node:assert/strict";
import { test } from "node:test";
import { Connector } from "agent-relay-connector";
import { startRelay } from "agent-relay-testing";
import { startAdder } from "../src/adder.ts";

test("adds what it is asked to add", async () => {
  await using relay = await startRelay();
  await using _adder = await startAdder(await relay.agent("adder"));
  await using alice = new Connector(await relay.agent("alice"));
  await alice.start();
  const { payload, verified } = await alice.ask("agent://adder", { numbers: [1, 2, 3] }, { type: "message.add" });
  assert.deepEqual({ payload, verified }, { payload: { sum: 6 }, verified: "agent" });
});

test("says what it cannot add", async () => {
  await using relay = await startRelay();
  await using _adder = await startAdder(await relay.agent("adder"));
  await using alice = new Connector(await relay.agent("alice"));
  await alice.start();
  const { payload } = await alice.ask("agent://adder", { numbers: ["1"] }, { type: "message.add" });
  assert.deepEqual(Object.keys(payload), ["problem"]);
});
