import { expect, test } from "@jest/globals";
import { Conversations } from "../src/conversations.ts";
import type { ReceivedDelivery } from "../src/delivery-judge.ts";
import { HttpClient } from "../src/http-client.ts";
import type { OwnEnvelopes } from "../src/own-envelopes.ts";
import { PresenceWatch } from "../src/presence-watch.ts";
import type { SenderVerifier } from "../src/sender-verifier.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];

/** Conversations that accept every message at once, and the tasks of what was sent. */
function conversations() {
  const tasks: string[] = [];
  const message = async ({ task_id }: { task_id: string }) => {
    tasks.push(task_id);
    return { envelopeId: "e-1", duplicate: false, delivery: { status: "online", canDeliverRealtime: true } };
  };
  const ownEnvelopes = { message, check: () => {} } as unknown as OwnEnvelopes;
  const verifier = { isPinned: () => false } as unknown as SenderVerifier;
  const presence = new PresenceWatch(new HttpClient("http://127.0.0.1:1", false), 1);
  return { tasks, talk: new Conversations({ ownEnvelopes, presence, verifier, sealsAll: false, maxAsks: 2 }) };
}

function replyOf(from: string, task_id: string | undefined, n: number): ReceivedDelivery {
  const common = { type: "message.reply", from, payload: { n } };
  const envelope = { ...common, id: `r-${n}`, to: ALICE, ...(task_id && { task_id }), ts: 0, key_id: "k", sig: "" };
  return { ...common, envelope, verified: "unverified", sealed: false, receivedAt: 0 };
}

test("of two replies that come together the first counts, and the second is a delivery", async () => {
  const { talk, tasks } = conversations();
  const asked = talk.ask(BOB, {}, {});
  const received = [1, 2].map((n) => talk.receive(replyOf(BOB, tasks[0], n)));
  expect(received.map((delivery) => delivery?.payload.n)).toEqual([undefined, 2]);
  expect((await asked).payload).toEqual({ n: 1 });
});

test("a reply counts before the ack of its question has come", async () => {
  const { talk, tasks } = conversations();
  const asked = [talk.ask(BOB, {}, {}), talk.ask(BOB, {}, {})];
  for (const n of [1, 0]) talk.receive(replyOf(BOB, tasks[n], n));
  expect((await Promise.all(asked)).map(({ payload }) => payload.n)).toEqual([0, 1]);
});
