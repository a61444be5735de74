import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { CREDENTIAL_LIMITS, SESSION_LIMITS } from "protocol/contract/limits.ts";
import type { Principal } from "../src/principal.ts";
import { decisionOf, requestOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Pod } from "./kit.ts";

/** What one agent of an issuer may take of the sessions that the issuer may have pending. */

const MINUTE = 60_000;
const LIFE_MINUTES = 5;
const { maxPendingPerPrincipal: SHARE, maxPendingPerRequesterAtTarget, openedPerMinute } = SESSION_LIMITS;
const OF_ISSUER = SHARE * CREDENTIAL_LIMITS.issuerFactor;
const ISSUER = "issuer:open";
const EVE = "agent://open.eve";
const LIMITED = { outcome: "rate_limited", limit: "agent_pending_sessions", retryAfterMs: MINUTE };
const bench = new Bench();
let link: ClockedLink;
let pod: Pod;

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

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
