import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Conversations } from "../src/conversations.ts";
import type { ReceivedDelivery } from "../src/delivery-judge.ts";
import { RelayError } from "../src/errors.ts";
import type { HttpClient } from "../src/http-client.ts";
import type { Delivery } from "../src/index.ts";
import { noReply } from "../src/no-reply.ts";
import type { OwnEnvelopes } from "../src/own-envelopes.ts";
import { PresenceWatch } from "../src/presence-watch.ts";
import type { SenderVerifier } from "../src/sender-verifier.ts";
import type { AskOptions } from "../src/types.ts";
import { errorOf } from "./kit.ts";

/** Questions until their reply, and what waits for its target to be online. `test/connectors` has both beside a relay. */

const [ALICE, BOB] = ["agent://alice", "agent://bob"];
const ONLINE = { status: "online", can_deliver_realtime: true };
const AWAY = { status: "offline", can_deliver_realtime: false };

let talk: Conversations;
/** The messages that went out. */
let sent: { task_id: string | undefined; isSealed: boolean }[];
/** Each message's answer; none comes of undefined. */
let ack: (nth: number) => { canDeliverRealtime: boolean; duplicate?: boolean } | undefined;
/** How often check-online was asked, and what it answers. */
let looks: number;
let presence: object;

beforeEach(() => {
  jest.useFakeTimers();
  [sent, ack, looks, presence] = [[], () => ({ canDeliverRealtime: true }), 0, AWAY];
  talk = conversations();
});
afterEach(() => void jest.useRealTimers());

function conversations({ sealsAll = false, maxWaiting = 200 } = {}): Conversations {
  const message = async ({ task_id }: { task_id?: string }, isSealed: boolean) => {
    const answer = ack(sent.push({ task_id, isSealed }) - 1);
    if (answer === undefined) return await new Promise(() => {});
    const { canDeliverRealtime, duplicate = false } = answer;
    return { envelopeId: "e-1", duplicate, delivery: { status: "online", canDeliverRealtime } };
  };
  const ask = async () => {
    looks += 1;
    return { status: 200, headers: {}, text: JSON.stringify(presence) };
  };
  return new Conversations({
    ownEnvelopes: { message, check: () => {} } as unknown as OwnEnvelopes,
    presence: new PresenceWatch({ ask } as unknown as HttpClient, maxWaiting),
    verifier: { isPinned: () => false } as unknown as SenderVerifier,
    ...{ sealsAll, maxAsks: 9 },
  });
}

/** What comes to alice. @returns the delivery; undefined for the reply to a question. */
function comes(fields: Partial<ReceivedDelivery> = {}, task_id = sent[0]?.task_id): Delivery | undefined {
  const common = { type: "message.reply", from: BOB, payload: {}, ...fields };
  const envelope = { ...common, id: "r", to: ALICE, ...(task_id && { task_id }), ts: 0, key_id: "k", sig: "" };
  return talk.receive({
    envelope,
    verified: "unverified",
    sealed: false,
    receivedAt: 0,
    ...common,
  } as ReceivedDelivery);
}

const asks = (options: AskOptions = {}) => {
  const asked = talk.ask(BOB, {}, options);
  asked.catch(() => {});
  return asked;
};
const passes = (ms = 0) => jest.advanceTimersByTimeAsync(ms);

describe("A question", () => {
  test("has a task of its own, and the first reply about it of the asked agent; all else is a delivery", async () => {
    const asked = asks();
    const others = [{ from: "agent://carol" }, { type: "message.send" }].map((fields) => comes(fields));
    others.push(comes({}, "another"), comes({}, ""));
    expect(others.map((delivery) => delivery === undefined)).toEqual([false, false, false, false]);
    expect(comes({ payload: { n: 1 } })).toBeUndefined();
    expect(comes({ payload: { n: 2 } })).toMatchObject({ payload: { n: 2 } });
    expect((await asked).payload).toEqual({ n: 1 });
    void asks();
    expect(sent[1]?.task_id).not.toBe(sent[0]?.task_id);
  });

  test("does not wait for another, nor for its own ack", async () => {
    ack = () => undefined;
    const asked = [asks(), asks()];
    for (const n of [1, 0]) comes({ payload: { n } }, sent[n]?.task_id);
    expect((await Promise.all(asked)).map(({ payload }) => payload.n)).toEqual([0, 1]);
  });

  test.each([
    ["asked for", false, true],
    ["of a connector that seals all", true, undefined],
  ])("that is sealed, as %s, takes no reply that others could read on its way", async (_, sealsAll, seal) => {
    talk = conversations({ sealsAll });
    const asked = asks({ seal });
    expect(sent[0]?.isSealed).toBe(true);
    expect(comes({ payload: { open: true } })).toBeDefined();
    comes({ sealed: true });
    expect(await asked).toMatchObject({ sealed: true });
  });

  test("that has ended takes no late reply", async () => {
    const asked = errorOf(asks({ timeoutMs: 1000 }));
    await passes(1000);
    expect(await asked).toMatchObject({ code: "timeout", outcome: "unknown", envelopeId: "e-1" });
    expect(comes()).toBeDefined();
  });

  test("that was repeated may have been received, whatever its ack says of the target now", async () => {
    ack = () => ({ canDeliverRealtime: false, duplicate: true });
    const asked = errorOf(asks({ timeoutMs: 1000 }));
    await passes(1000);
    expect(await asked).toMatchObject({ code: "timeout", outcome: "unknown" });
    ack = () => ({ canDeliverRealtime: false });
    expect(await errorOf(asks())).toMatchObject({ code: "target_not_online", outcome: "refused" });
  });

  test("ends when its caller aborts it, and with the connector, for its reason", async () => {
    const caller = new AbortController();
    const [aborted, ended] = [errorOf(asks({ signal: caller.signal })), errorOf(asks())];
    await passes();
    caller.abort("enough");
    expect(await aborted).toMatchObject({ code: "aborted", outcome: "unknown", cause: "enough" });
    talk.end(new RelayError("superseded"));
    expect(await ended).toMatchObject({ code: "superseded", outcome: "unknown" });
  });

  test("without a reply is told that the connection was lost, since when, and whether it is back", () => {
    const silence = { envelopeId: "env-1", lostAt: undefined, isLost: false };
    expect(noReply(silence, 9000)).toMatchObject({ message: "No reply came in time.", outcome: "unknown" });
    const since = "No reply came in time: the connection to the relay was lost 7.5 s ago, and is not back.";
    expect(noReply({ ...silence, lostAt: 1500, isLost: true }, 9000).message).toBe(since);
    const { message } = noReply({ ...silence, lostAt: 1500 }, 9000);
    expect(message).toMatch(/the connection to the relay was lost meanwhile\.$/);
  });
});

test("The reply of a delivery is no part of a copy of it", () => {
  const delivery = comes({}, "t") as Delivery;
  expect(Object.keys(structuredClone(delivery))).toEqual(Object.keys(delivery));
  expect(structuredClone(delivery)).not.toHaveProperty("reply");
});

describe("With waitOnline", () => {
  const WAIT = { waitOnline: 60_000 };

  test("what waited in vain was not sent", async () => {
    const calls = [errorOf(talk.ask(BOB, {}, WAIT)), errorOf(talk.send(BOB, {}, WAIT))];
    await passes(60_000);
    for (const error of await Promise.all(calls)) {
      expect(error).toMatchObject({ code: "target_not_online", outcome: "refused", retry: "later" });
      expect(error.envelopeId).toBeUndefined();
    }
    expect(sent).toEqual([]);
  });

  test("one look is for all who wait for an agent, of whom there are as many as may be pending", async () => {
    const waiting = Array.from({ length: 200 }, () => talk.send(BOB, {}, WAIT));
    expect(await errorOf(talk.send(BOB, {}, WAIT))).toMatchObject({ code: "queue_full" });
    await passes(10_000);
    presence = ONLINE;
    await passes(10_000);
    await Promise.all(waiting);
    expect(looks).toBeGreaterThan(1);
    expect(looks).toBeLessThan(20);
  });

  test.each([
    [61_234, 61_234],
    [1e12, 3_600_000],
  ])("a look comes no sooner than the relay lets it, after %d ms, and after an hour at most", async (asked, ms) => {
    presence = { ok: false, code: "rate_limited", retry_after_ms: asked };
    const vain = errorOf(talk.ask(BOB, {}, { waitOnline: 2 * ms }));
    await passes(ms - 1);
    expect(looks).toBe(1);
    await passes(1);
    expect(looks).toBe(2);
    await passes(ms);
    expect(await vain).toMatchObject({ code: "timeout", outcome: "refused" });
  });

  test("an answer that says that the target can be reached, and not how it is, is none", async () => {
    presence = { can_deliver_realtime: true };
    const vain = errorOf(talk.waitOnline(BOB, { timeoutMs: 60_000 }));
    await passes(60_000);
    expect(looks).toBeGreaterThan(1);
    expect(await vain).toMatchObject({ code: "timeout", outcome: "refused" });
  });

  test("a question waits on when its target is gone again before it is reached", async () => {
    [presence, ack] = [ONLINE, (nth) => ({ canDeliverRealtime: nth > 0 })];
    const asked = asks(WAIT);
    await passes(10_000);
    expect(sent).toHaveLength(2);
    comes({ payload: { n: 1 } });
    expect((await asked).payload).toEqual({ n: 1 });
  });

  test("the wait ends when its caller aborts it, or with the connector, and nothing is asked any more", async () => {
    const caller = new AbortController();
    const call = (options: AskOptions) => [errorOf(talk.ask(BOB, {}, options)), errorOf(talk.send(BOB, {}, options))];
    const [aborted, closed] = [call({ ...WAIT, signal: caller.signal }), call(WAIT)];
    await passes();
    caller.abort();
    for (const error of aborted) expect(await error).toMatchObject({ code: "aborted", outcome: "refused" });
    talk.end(new RelayError("closed"));
    for (const error of [...closed, ...call(WAIT)])
      expect(await error).toMatchObject({ code: "closed", outcome: "refused" });
    const before = looks;
    await passes(60_000);
    expect([looks, sent, jest.getTimerCount()]).toEqual([before, [], 0]);
  });
});
