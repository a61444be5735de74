import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Pod, TestRelay } from "../support/relay.ts";

const relay = new TestRelay("alice", "bob-hmac");
let one: Pod;
let two: Pod;

beforeAll(async () => {
  await relay.start();
  one = await relay.startWsConnector();
  two = await relay.startWsConnector();
});
afterAll(() => relay.stop());

test("two agents on two pods exchange messages in order", async () => {
  const alice = await relay.online(one, "alice");
  const bob = await relay.online(two, "bob-hmac");
  for (let n = 0; n < 50; n += 1) {
    alice.send(relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: { n } }));
  }
  await bob.next("the last", (f) => f.frame === "deliver" && f.envelope.payload.n === 49);
  expect(bob.deliveries.map((f) => f.envelope.payload.n)).toEqual(Array.from({ length: 50 }, (_, n) => n));
  const ack = await bob.ask(relay.envelope("bob-hmac", "session.request", { to: "agent://alice", payload: { purpose: "p" } }));
  expect(ack).toMatchObject({ accepted: true, session_status: "pending_until_session.approve_or_session.reject" });
  await alice.next("req", (f) => f.frame === "deliver");
  const approve = await alice.ask(relay.envelope("alice", "session.approve", { to: "agent://bob-hmac", payload: { session_id: ack.session_id } }));
  expect(approve).toMatchObject({ accepted: true, session_status: "approved", session_id: ack.session_id });
  await bob.next("approve", (f) => f.frame === "deliver" && f.envelope.type === "session.approve");
  const alice2 = await relay.online(two, "alice");
  expect(await alice.untilClosed()).toBe(4409);
  await alice2.close();
});
