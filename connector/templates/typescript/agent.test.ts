import assert from "node:assert/strict";
import { test } from "node:test";
import { Connector } from "agent-relay-connector";
import { startRelay } from "agent-relay-testing";
import { serve } from "./agent.ts";

test("the agent", async (t) => {
  await using relay = await startRelay();
  await using agent = new Connector(await relay.agent("me"));
  await using alice = new Connector(await relay.agent("alice"));
  await Promise.all([agent.start(), alice.start()]);
  void serve(agent);

  await t.test("answers a message", async () => {
    const { payload } = await alice.ask("agent://me", { message: "Hi." });
    assert.deepEqual(payload, { message: "Hello, agent://alice. You said: Hi." });
  });

  await t.test("approves a session of an hour, and rejects a longer one", async () => {
    assert.equal(await decisionOn(60), "session.approve");
    assert.equal(await decisionOn(61), "session.reject");
  });

  async function decisionOn(ttlMinutes: number): Promise<string | undefined> {
    const { sessionId } = await alice.requestSession("agent://me", { purpose: "to talk", ttlMinutes });
    for await (const delivery of alice) if (delivery.sessionId === sessionId) return delivery.type;
    return undefined;
  }
});
