import assert from "node:assert/strict";
import { test } from "node:test";
import { Connector } from "agent-relay-connector";
import { startRelay } from "agent-relay-testing";
import { serve } from "./agent.ts";

test("the agent", async (t) => {
  await using relay = await startRelay();
  await using me = new Connector(await relay.agent("me"));
  await using alice = new Connector(await relay.agent("alice"));
  await using mallory = new Connector(await relay.agent("mallory"));
  await Promise.all([me.start(), alice.start(), mallory.start()]);
  void serve(me);

  await t.test("answers a message", async () => {
    const { payload } = await alice.ask("agent://me", { message: "Hi." });
    assert.deepEqual(payload, { message: "Hello, agent://alice. You said: Hi." });
  });

  await t.test("approves sessions with all but mallory", async () => {
    assert.equal(await decisionFor(alice), "session.approve");
    assert.equal(await decisionFor(mallory), "session.reject");
  });
});

/** The type of the first delivery after a request. */
async function decisionFor(requester: Connector): Promise<string | undefined> {
  await requester.requestSession("agent://me", { purpose: "to talk" });
  for await (const { type } of requester) return type;
  return undefined;
}
