import assert from "node:assert/strict";
import { test } from "node:test";
import { Connector, type Delivery } from "agent-relay-connector";
import { startRelay } from "agent-relay-testing";
import { approves, serve } from "./agent.ts";

test("the agent", async (t) => {
  await using relay = await startRelay();
  await using me = new Connector(await relay.agent("me"));
  await using alice = new Connector(await relay.agent("alice"));
  await Promise.all([me.start(), alice.start()]);
  void serve(me);

  await t.test("answers a message", async () => {
    const { payload } = await alice.ask("agent://me", { message: "Hi." });
    assert.deepEqual(payload, { message: "Hello, agent://alice. You said: Hi." });
  });

  await t.test("says what it understands to a message without a text", async () => {
    const { payload } = await alice.ask("agent://me", { temperature: 21 });
    assert.equal(payload.message, undefined);
  });

  await t.test("approves sessions with those whom somebody that it trusts vouches for, and no other", async () => {
    assert.equal(await decisionFor(alice), "session.approve");
    assert.equal(approves({ verified: "unverified" } as Delivery), false);
  });
});

/** The type of the first delivery after a request. */
async function decisionFor(requester: Connector): Promise<string | undefined> {
  await requester.requestSession("agent://me", { purpose: "to talk" });
  for await (const { type } of requester) return type;
  return undefined;
}
