import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { PENDING } from "protocol/contract/session.ts";
import { principalOf } from "../src/principal.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { readSession } from "../src/sessions.ts";
import { decisionOf, delivery, requestOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Pod } from "./kit.ts";

const MINUTE = 60_000;
const { maxPendingPerTarget, maxPendingPerRequesterAtTarget, maxPendingPerPrincipal } = SESSION_LIMITS;
const { openedPerMinute, openedPerMinuteOfPrincipal } = SESSION_LIMITS;
const BOB = "agent://bob";
const bench = new Bench();
let link: ClockedLink;
let pod: Pod;

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const open = async (from: string, to: string, principal: string, minutes = 60) =>
  (await pod.request(from, to, minutes, { principal: principalOf({ keyId: principal }) })).sessionId as string;
const tryToOpen = async (from: string, to: string, principal: string, minutes = 60) =>
  await pod.take(requestOf(from, to, minutes), { principal: principalOf({ keyId: principal }) });
const numbered = (count: number, name: string) => Array.from({ length: count }, (_, n) => `agent://${name}-${n}`);
const statusOf = async (sessionId: string) => (await readSession(link, pod.window, sessionId))?.status;

describe("at one target", () => {
  beforeEach(async () => {
    pod = await bench.pod({ link });
  });
  const statuses = (sessions: readonly string[]) => Promise.all(sessions.map((session) => statusOf(session)));
  /** Sessions of one principal, of so many requesters that none has more than its share. */
  const fill = async (principal: string, count: number) => {
    const sessions: string[] = [];
    for (let n = 0; n < count; n += 1) sessions.push(await open(`agent://${principal}-${n % 20}`, BOB, principal));
    return sessions;
  };
  const given = (all: readonly (string | undefined)[]) => all.flatMap((status, n) => (status === "expired" ? [n] : []));

  test("a requester's eleventh session takes the place of its own oldest, and of nobody else's", async () => {
    const others = await fill("other", 3);
    const own: string[] = [];
    for (let n = 0; n <= maxPendingPerRequesterAtTarget; n += 1)
      own.push(await open("agent://alice", BOB, "a", n === 0 ? 1440 : 5));
    expect(given(await statuses(own))).toEqual([0]);
    expect(given(await statuses(others))).toEqual([]);
    const late = decisionOf("approve", BOB, "agent://alice", own[0] as string);
    expect(await pod.take(late)).toEqual({ outcome: "session_closed" });
    const registered = await pod.register(BOB);
    expect(registered.pending.map(({ sessionId }) => sessionId)).toEqual([...others, ...own.slice(1)]);
  });

  test("which holds whatever principals it used", async () => {
    const own: string[] = [];
    for (let n = 0; n <= maxPendingPerRequesterAtTarget; n += 1) own.push(await open("agent://alice", BOB, `key-${n}`));
    expect(given(await statuses(own))).toEqual([0]);
  });

  test("a full target's newcomer takes the place of the oldest of the principal with the most there", async () => {
    const few = await fill("few", 30);
    const many = await fill("many", maxPendingPerTarget - 30);
    const newcomer = await open("agent://carol", BOB, "newcomer");
    expect(given(await statuses(few))).toEqual([]);
    expect(given(await statuses(many))).toEqual([0]);
    expect(await statusOf(newcomer)).toBe(PENDING);
  });

  test("of a principal with fewer than the newcomer's would then have nothing gives way: its own oldest does", async () => {
    const own = await fill("own", 50);
    const others = await fill("other", maxPendingPerTarget - 50);
    await open("agent://own-late", BOB, "own");
    expect(given(await statuses(others))).toEqual([]);
    expect(given(await statuses(own))).toEqual([0]);
    await open("agent://other-late", BOB, "other");
    expect(given(await statuses(others))).toEqual([0]);
  });

  test("what gave way is kept for an hour from then, not from when it would have expired", async () => {
    const [oldest] = await fill("own", maxPendingPerTarget);
    await open("agent://own-late", BOB, "own");
    const key = (await bench.keys()).session(oldest as string);
    expect(await bench.client.pttl(key)).toBeLessThanOrEqual(SESSION_LIMITS.keepAfterEndMs);
  });

  test("which holds of one that gave way within the batch that opened it, too", async () => {
    const requests = Array.from({ length: maxPendingPerRequesterAtTarget + 1 }, () =>
      requestOf("agent://alice", BOB, 1440),
    );
    const all = await Promise.all(requests.map((request) => pod.take(request, { principal: "key:a" })));
    const sessions = all.map((one) => (one as { sessionId: string }).sessionId);
    expect(given(await statuses(sessions))).toEqual([0]);
    const key = (await bench.keys()).session(sessions[0] as string);
    expect(await bench.client.pttl(key)).toBeLessThanOrEqual(SESSION_LIMITS.keepAfterEndMs);
  });

  test("where all have one, the oldest of all gives way to a newcomer", async () => {
    const sessions: string[] = [];
    for (let n = 0; n < maxPendingPerTarget; n += 1) sessions.push(await open(`agent://one-${n}`, BOB, `p-${n}`));
    await open("agent://carol", BOB, "newcomer");
    expect(given(await statuses(sessions))).toEqual([0]);
  });

  test("expired sessions make room before any other gives way", async () => {
    const short = await open("agent://alice", BOB, "a", 5);
    const sessions = await fill("other", maxPendingPerTarget - 1);
    link.at += 5 * MINUTE;
    await open("agent://carol", BOB, "newcomer");
    expect(await statusOf(short)).toBe("expired");
    expect(given(await statuses(sessions))).toEqual([]);
  });

  test("a request that comes again is a duplicate, which takes nobody's place, and names the one that gave way expired", async () => {
    const request = requestOf("agent://alice", BOB);
    const { sessionId } = delivery(await pod.accept(request));
    for (let n = 0; n < maxPendingPerRequesterAtTarget; n += 1) await open("agent://alice", BOB, "key-1");
    for (const status of ["expired", "expired"]) {
      expect(await pod.accept(request)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: status });
    }
    expect((await pod.register(BOB)).pending).toHaveLength(maxPendingPerRequesterAtTarget);
  });

  test("bounds of one target are nobody's at another", async () => {
    const sessions = await fill("many", maxPendingPerTarget);
    await open("agent://alice", "agent://carol", "a");
    expect(given(await statuses(sessions))).toEqual([]);
  });
});

describe.each([1, 3])("over %i partitions", (partitions) => {
  const targets = numbered(maxPendingPerPrincipal + 10, "target");
  const requesters = numbered(10, "requester");
  const requesterOf = (n: number) => requesters[n % requesters.length] as string;
  const fillUp = async (minutes = 60) => {
    const sessions: string[] = [];
    for (const [n, target] of targets.slice(0, maxPendingPerPrincipal).entries()) {
      sessions.push(await open(requesterOf(n), target, "p", minutes));
    }
    return sessions;
  };
  const oneMore = (principal = "p") => tryToOpen("agent://late", targets.at(-1) as string, principal);
  const LIMITED = { outcome: "rate_limited", limit: "pending_sessions", retryAfterMs: MINUTE };

  beforeEach(async () => {
    pod = await bench.pod({ link, partitions });
  });

  test("a principal has at most 200 pending sessions; one more is refused, another principal's is not", async () => {
    await fillUp();
    expect(new Set(targets.map((target) => partitionOf(target, partitions))).size).toBe(partitions);
    expect(await oneMore()).toEqual(LIMITED);
    expect(await oneMore("q")).toMatchObject({ outcome: "accepted" });
  });

  test("what is decided gives it room again, and so does what gave way", async () => {
    const [first] = await fillUp();
    await pod.take(decisionOf("reject", targets[0] as string, requesterOf(0), first as string));
    expect(await oneMore()).toMatchObject({ outcome: "accepted" });
    expect(await oneMore()).toEqual(LIMITED);
    for (let n = 0; n < maxPendingPerRequesterAtTarget; n += 1) await open(requesterOf(1), targets[1] as string, "q");
    expect(await oneMore()).toMatchObject({ outcome: "accepted" });
  });

  test("what takes the place of its own needs no room", async () => {
    for (let n = 0; n < maxPendingPerPrincipal; n += 1) {
      await open(requesterOf(n), targets[Math.floor(n / 100)] as string, "p");
    }
    expect(await oneMore()).toEqual(LIMITED);
    expect(await tryToOpen(requesterOf(0), targets[0] as string, "p")).toMatchObject({ outcome: "accepted" });
  });

  test("what has expired gives it room again, and nothing of it is left in Redis", async () => {
    await fillUp(5);
    link.at += 5 * MINUTE - 1;
    expect(await oneMore()).toEqual(LIMITED);
    link.at += 1;
    expect(await oneMore()).toMatchObject({ outcome: "accepted" });
    const counts = [];
    for (const key of await bench.client.keys("relay:*:principal:*")) {
      counts.push(await bench.client.zcount(key, link.at + 1, "+inf"));
      expect(await bench.client.pttl(key)).toBeGreaterThan(0);
    }
    expect(counts.reduce((sum, n) => sum + n, 0)).toBe(1);
  });

  test("a refused request leaves nothing: the same one is accepted once there is room", async () => {
    const [first] = await fillUp();
    const request = requestOf("agent://late", targets.at(-1) as string);
    expect(await pod.take(request, { principal: "key:p" })).toEqual(LIMITED);
    await pod.take(decisionOf("reject", targets[0] as string, requesterOf(0), first as string));
    expect(await pod.take(request, { principal: "key:p" })).toMatchObject({ outcome: "accepted" });
    expect(await pod.take(request, { principal: "key:p" })).toMatchObject({
      outcome: "duplicate",
      sessionStatus: PENDING,
    });
  });

  test("all requesters of a principal open at most 600 sessions a minute, also of those that give way", async () => {
    const last = targets.at(-1) as string;
    const crowd = numbered(openedPerMinuteOfPrincipal / openedPerMinute, "crowd");
    // Two targets, where each has its share, so that no more pend than may.
    const [one, other] = Object.values(Object.groupBy(targets, (target) => partitionOf(target, partitions))).map(
      (of) => of?.[0],
    );
    for (let n = 0; n < openedPerMinuteOfPrincipal; n += 1) {
      const target = Math.floor(n / crowd.length) % 2 === 0 ? one : other;
      await open(crowd[n % crowd.length] as string, target ?? (one as string), "p");
    }
    const refused = await tryToOpen("agent://late", last, "p");
    expect(refused).toMatchObject({ outcome: "rate_limited", limit: "key_opened_sessions" });
    const { retryAfterMs } = refused as { retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(MINUTE);
    expect(await tryToOpen("agent://late", last, "q")).toMatchObject({ outcome: "accepted" });
  });

  test("a requester opens at most 60 sessions a minute, whatever its principals and targets", async () => {
    for (let n = 0; n < openedPerMinute; n += 1) await open("agent://alice", targets[n] as string, `p-${n % 3}`);
    const last = targets.at(-1) as string;
    const refused = await tryToOpen("agent://alice", last, "p-0");
    expect(refused).toMatchObject({ outcome: "rate_limited", limit: "opened_sessions" });
    const { retryAfterMs } = refused as { retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(MINUTE);
    expect(await tryToOpen("agent://carol", last, "p-0")).toMatchObject({ outcome: "accepted" });
    for (let p = 0; p < partitions; p += 1) {
      const key = (await bench.keys(p)).opened("agent://alice");
      expect(await bench.client.pttl(key)).toBeGreaterThan(0);
      await bench.client.del(key);
    }
    expect(await tryToOpen("agent://alice", last, "p-0")).toMatchObject({ outcome: "accepted" });
  });
});
