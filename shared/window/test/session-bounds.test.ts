import { beforeEach, describe, expect, test } from "@jest/globals";
import { PENDING } from "relay-protocol/contract/session.ts";
import { CREDENTIAL_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { type Principal, principalOf } from "../src/limits/principals.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { readSession } from "../src/sessions/look-ups.ts";
import { ALICE, BOB, CAROL, decisionOf, delivery, requestOf } from "./envelopes.ts";
import { ClockedLink, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let link: ClockedLink;
let pod: Pod;

const MINUTE = 60_000;
const { maxPendingPerTarget, maxPendingPerRequesterAtTarget, maxPendingPerPrincipal } = SESSION_LIMITS;
const { openedPerMinute, openedPerMinuteOfPrincipal } = SESSION_LIMITS;

beforeEach(async () => {
  link = await ClockedLink.of(bench);
});

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
      own.push(await open(ALICE, BOB, "a", n === 0 ? 1440 : 5));
    expect(given(await statuses(own))).toEqual([0]);
    expect(given(await statuses(others))).toEqual([]);
    const late = decisionOf("approve", BOB, ALICE, own[0] as string);
    expect(await pod.take(late)).toEqual({ outcome: "session_closed" });
    const registered = await pod.register(BOB);
    expect(registered.pending.map(({ sessionId }) => sessionId)).toEqual([...others, ...own.slice(1)]);
  });

  test("which holds whatever principals it used", async () => {
    const own: string[] = [];
    for (let n = 0; n <= maxPendingPerRequesterAtTarget; n += 1) own.push(await open(ALICE, BOB, `key-${n}`));
    expect(given(await statuses(own))).toEqual([0]);
  });

  test("a full target's newcomer takes the place of the oldest of the principal with the most there", async () => {
    const few = await fill("few", 30);
    const many = await fill("many", maxPendingPerTarget - 30);
    const newcomer = await open(CAROL, BOB, "newcomer");
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
    const requests = Array.from({ length: maxPendingPerRequesterAtTarget + 1 }, () => requestOf(ALICE, BOB, 1440));
    const all = await Promise.all(requests.map((request) => pod.take(request, { principal: "key:a" })));
    const sessions = all.map((one) => (one as { sessionId: string }).sessionId);
    expect(given(await statuses(sessions))).toEqual([0]);
    const key = (await bench.keys()).session(sessions[0] as string);
    expect(await bench.client.pttl(key)).toBeLessThanOrEqual(SESSION_LIMITS.keepAfterEndMs);
  });

  test("where all have one, the oldest of all gives way to a newcomer", async () => {
    const sessions: string[] = [];
    for (let n = 0; n < maxPendingPerTarget; n += 1) sessions.push(await open(`agent://one-${n}`, BOB, `p-${n}`));
    await open(CAROL, BOB, "newcomer");
    expect(given(await statuses(sessions))).toEqual([0]);
  });

  test("expired sessions make room before any other gives way", async () => {
    const short = await open(ALICE, BOB, "a", 5);
    const sessions = await fill("other", maxPendingPerTarget - 1);
    link.at += 5 * MINUTE;
    await open(CAROL, BOB, "newcomer");
    expect(await statusOf(short)).toBe("expired");
    expect(given(await statuses(sessions))).toEqual([]);
  });

  test("a request that comes again is a duplicate, which takes nobody's place, and names the one that gave way expired", async () => {
    const request = requestOf(ALICE, BOB);
    const { sessionId } = delivery(await pod.accept(request));
    for (let n = 0; n < maxPendingPerRequesterAtTarget; n += 1) await open(ALICE, BOB, "key-1");
    for (const status of ["expired", "expired"]) {
      expect(await pod.accept(request)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: status });
    }
    expect((await pod.register(BOB)).pending).toHaveLength(maxPendingPerRequesterAtTarget);
  });

  test("bounds of one target are nobody's at another", async () => {
    const sessions = await fill("many", maxPendingPerTarget);
    await open(ALICE, CAROL, "a");
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
    for (let n = 0; n < openedPerMinute; n += 1) await open(ALICE, targets[n] as string, `p-${n % 3}`);
    const last = targets.at(-1) as string;
    const refused = await tryToOpen(ALICE, last, "p-0");
    expect(refused).toMatchObject({ outcome: "rate_limited", limit: "opened_sessions" });
    const { retryAfterMs } = refused as { retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(MINUTE);
    expect(await tryToOpen(CAROL, last, "p-0")).toMatchObject({ outcome: "accepted" });
    for (let p = 0; p < partitions; p += 1) {
      const key = (await bench.keys(p)).opened(ALICE);
      expect(await bench.client.pttl(key)).toBeGreaterThan(0);
      await bench.client.del(key);
    }
    expect(await tryToOpen(ALICE, last, "p-0")).toMatchObject({ outcome: "accepted" });
  });
});

describe("of an issuer,", () => {
  const LIFE_MINUTES = 5;
  const { maxPendingPerPrincipal: SHARE, maxPendingPerRequesterAtTarget, openedPerMinute } = SESSION_LIMITS;
  const OF_ISSUER = SHARE * CREDENTIAL_LIMITS.issuerFactor;
  const ISSUER = "issuer:open";
  const EVE = "agent://open.eve";
  const LIMITED = { outcome: "rate_limited", limit: "agent_pending_sessions", retryAfterMs: MINUTE };
  const ask = (from: string, to: string, principal: Principal = ISSUER) =>
    pod.take(requestOf(from, to, LIFE_MINUTES), { principal });
  const target = (n: number) => `agent://target-${n}`;

  /** Opens as many as it may, but no more than `most`. Returns them, in order. */
  async function fillUp(from: string, most: number): Promise<string[]> {
    const sessions: string[] = [];
    while (sessions.length < most) {
      const answer = await ask(from, target(sessions.length));
      if (answer.outcome !== "accepted") break;
      sessions.push((answer as { sessionId: string }).sessionId);
      if (sessions.length % openedPerMinute === 0) await nextMinute();
    }
    return sessions;
  }

  /** Forgets what was opened within a minute, which is another bound. */
  async function nextMinute(): Promise<void> {
    const opened = await bench.client.keys("relay:*:opened:*");
    await Promise.all(opened.map((key) => bench.client.del(key)));
  }

  describe.each([1, 3])("over %i partitions", (partitions) => {
    beforeEach(async () => {
      pod = await bench.pod({ link, partitions });
    });

    test("an agent of an issuer has at most 200 pending; another agent of it has its own, and so has the id under a key", async () => {
      expect(await fillUp(EVE, SHARE + 1)).toHaveLength(SHARE);
      expect(await ask(EVE, target(SHARE))).toEqual(LIMITED);
      expect(await ask("agent://open.bob", target(SHARE))).toMatchObject({ outcome: "accepted" });
      expect(await ask(EVE, target(SHARE), "key:eve")).toMatchObject({ outcome: "accepted" });
    });

    /** Two, since a session that is off its issuer's count alone gives room for one, too: a 25th is rounded up. */
    const expectRoomForTwo = async (n: number) => {
      expect(await ask(EVE, target(n))).toMatchObject({ outcome: "accepted" });
      expect(await ask(EVE, target(n + 1))).toMatchObject({ outcome: "accepted" });
      expect(await ask(EVE, target(n + 2))).toEqual(LIMITED);
    };

    test("what is decided gives it room again", async () => {
      const sessions = await fillUp(EVE, SHARE + 1);
      for (const n of [0, 1]) await pod.take(decisionOf("reject", target(n), EVE, sessions[n] as string));
      await expectRoomForTwo(SHARE);
    });

    test("and so does what gave way", async () => {
      await fillUp(EVE, SHARE + 1);
      for (const n of [0, 1]) {
        for (let k = 0; k < maxPendingPerRequesterAtTarget; k += 1) await ask(EVE, target(n), "key:eve");
      }
      await expectRoomForTwo(SHARE);
    });

    test("what takes the place of its own needs no room", async () => {
      for (let n = 0; n < SHARE; n += 1) {
        await ask(EVE, target(Math.floor(n / maxPendingPerRequesterAtTarget)));
        if (n % openedPerMinute === 0) await nextMinute();
      }
      await nextMinute();
      expect(await ask(EVE, target(SHARE))).toEqual(LIMITED);
      expect(await ask(EVE, target(0))).toMatchObject({ outcome: "accepted" });
    });

    test("what has expired leaves nothing", async () => {
      await fillUp(EVE, openedPerMinute);
      link.at += LIFE_MINUTES * MINUTE;
      expect(await fillUp(EVE, SHARE + 1)).toHaveLength(SHARE);
      const keys = await bench.client.keys(`relay:*:principal:*:${EVE}`);
      const counts = await Promise.all(keys.map((key) => bench.client.zcard(key)));
      expect(counts.reduce((sum, n) => sum + n, 0)).toBe(SHARE);
      for (const key of keys) expect(await bench.client.pttl(key)).toBeGreaterThan(0);
    });
  });

  test("However many sessions 85 agents of an issuer open in a minute, another agent of it opens some", async () => {
    pod = await bench.pod({ link });
    const crowd = Array.from({ length: 85 }, (_, n) => `agent://open.eve-${n}`);
    const held = await Promise.all(crowd.map((agent) => fillUp(agent, openedPerMinute)));
    expect(held.flat().length).toBeLessThan(OF_ISSUER);
    expect((await fillUp("agent://open.victim", 10)).length).toBe(10);
  }, 60_000);
});

describe("what is kept of pending sessions", () => {
  const { maxPendingPerPrincipal } = SESSION_LIMITS;
  const LONGEST_NAME = 63;
  const MOST_BYTES = { key: 800, issuer: 1000 };

  beforeEach(async () => {
    pod = await bench.pod({ pod: "pod-a" });
    await bench.ear("pod-a");
  });

  const longest = (name: string) => `agent://${name.padEnd(LONGEST_NAME, "x")}`;

  /** What lasts as long as a session: its record, what is asked of its target, what its principal has pending. */
  const KINDS = ["session", "asked", "principal"];

  async function bytesOfSessions(): Promise<number> {
    const keys = (await bench.client.keys("relay:*")).filter((key) => KINDS.includes(key.split(":")[2] as string));
    const sizes = await Promise.all(keys.map((key) => bench.client.memory("USAGE", key, "SAMPLES", 0)));
    return sizes.reduce<number>((sum, size) => sum + Number(size), 0);
  }

  test.each([
    ["one, of a principal that has no other,", 1, 1, "key"],
    ["each of 200 of one principal, at as many targets,", maxPendingPerPrincipal, maxPendingPerPrincipal, "key"],
    ["each of 200 of one principal, at two targets,", maxPendingPerPrincipal, 2, "key"],
    ["one, of an issuer and agent that have no other,", 1, 1, "issuer"],
    ["each of 200 of one issuer, at as many targets,", maxPendingPerPrincipal, maxPendingPerPrincipal, "issuer"],
  ] as const)(
    "takes at most 800 bytes each, 1,000 of an issuer, with the longest ids, its target's index and proof included: %s",
    async (_, count, targets, kind) => {
      for (let n = 0; n < targets; n += 1) await pod.register(longest(`target-${n}-`));
      for (let n = 0; n < count; n += 1) {
        const request = requestOf(longest(`requester-${n % 20}-`), longest(`target-${n % targets}-`), 1440);
        const accepted = await pod.accept(request, { principal: `${kind}:${"k".repeat(128)}` });
        expect(accepted).toMatchObject({ outcome: "accepted", delivery: "online" });
      }
      expect(await bench.client.keys("relay:*:session:*")).toHaveLength(count);
      expect((await bytesOfSessions()) / count).toBeLessThanOrEqual(MOST_BYTES[kind]);
    },
  );
});
