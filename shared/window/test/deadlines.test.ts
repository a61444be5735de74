import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { ReplyError } from "ioredis";
import type { Logger } from "relay-runtime/logging.ts";
import { until } from "../../../test/support/until.ts";
import type { Acceptance } from "../src/acceptance/acceptance.ts";
import { addFeedback } from "../src/counters/counters.ts";
import { controlKeys } from "../src/redis/keys.ts";
import { unavailable } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { ClockOffset, RedisClock, timeIn } from "../src/redis/server-info.ts";
import { ALICE, BOB, claimOf, decisionOf, envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { ClockedLink, type Ear, type Pod, redisBench, whileRedisHangs } from "./kit.ts";

const bench = redisBench();

const UNAVAILABLE = { outcome: "unavailable" };
let pod: Pod;
let ear: Ear;

beforeEach(async () => {
  pod = await bench.pod();
  ear = await bench.ear("pod-a");
  await pod.register(BOB);
});

const sentWhileRedisHangs = <T>(send: () => Promise<T>) => whileRedisHangs(bench, pod, send);

/** What the replay guard holds. */
async function guarded(): Promise<string[]> {
  const buckets = await bench.client.keys("relay:*:seen:*");
  return (await Promise.all(buckets.map((key) => bench.client.smembers(key)))).flat();
}

describe("what Redis comes to only after its sender was told `unavailable` does nothing:", () => {
  test("no message is delivered, guarded or counted, and the same one sent again is accepted", async () => {
    const message = messageOf(ALICE, BOB);
    const before = await guarded();
    expect(await sentWhileRedisHangs(() => pod.accept(message))).toEqual(UNAVAILABLE);
    expect(await ear.lines()).toEqual([]);
    expect(await guarded()).toEqual(before);
    expect((await bench.counters()).published_envelopes).toBeUndefined();
    expect(await pod.accept(message)).toMatchObject({ outcome: "accepted", delivery: "online" });
    expect(await ear.lines()).toHaveLength(1);
  });

  test("no agent changes hands", async () => {
    const before = await bench.routes();
    const register = envelopeOf("agent.register", BOB);
    expect(await sentWhileRedisHangs(() => pod.accept(register, { connection: "c2" }))).toEqual(UNAVAILABLE);
    expect(await bench.routes()).toEqual(before);
  });

  test("no Idempotency-Key is taken: it is free for another request", async () => {
    const send = (body: string): Promise<Acceptance> =>
      pod.accept(requestOf(ALICE, BOB), { origin: "gateway", claim: claimOf("key", body) });
    expect(await sentWhileRedisHangs(() => send("one"))).toEqual(UNAVAILABLE);
    expect(await bench.client.keys("relay:*:idempotency*")).toEqual([]);
    expect(await send("another")).toMatchObject({ outcome: "accepted" });
  });

  test("no session is decided, and none is reserved: its target may decide otherwise", async () => {
    const { sessionId } = await pod.request(ALICE, BOB);
    const before = await guarded();
    const approval = decisionOf("approve", BOB, ALICE, sessionId as string);
    expect(await sentWhileRedisHangs(() => pod.prepare(approval))).toEqual(UNAVAILABLE);
    expect(await guarded()).toEqual(before);
    const rejection = decisionOf("reject", BOB, ALICE, sessionId as string);
    expect(await pod.take(rejection)).toMatchObject({ outcome: "accepted", sessionStatus: "rejected" });
  });

  test("nor is it decided where only its decision comes late, its reservation having been made", async () => {
    const { sessionId } = await pod.request(ALICE, BOB);
    const approval = decisionOf("approve", BOB, ALICE, sessionId as string);
    const outcome = await whileRedisHangs(bench, pod, () => pod.prepare(approval), "decide_session");
    expect(outcome).toEqual(UNAVAILABLE);
    expect(await bench.client.get((await bench.keys()).session(sessionId as string))).toMatch(/^p /);
    expect(await pod.take(approval)).toMatchObject({ outcome: "accepted", sessionStatus: "approved" });
  });

  test("no feedback is counted, which its sender sends again", async () => {
    const send = () => addFeedback(pod.link, pod.window, {}).catch(({ code }) => code);
    expect(await sentWhileRedisHangs(send)).toBe("unavailable");
    expect(await bench.client.exists((await bench.wholeKeys()).feedback)).toBe(0);
  });
});

describe("a call that is not carried out", () => {
  test("is over when its deadline is, where its connection was given up before", async () => {
    const calls = jest.spyOn(pod.link.client, "evalsha");
    await bench.redis.pause();
    const sentAt = performance.now();
    const outcome = pod.accept(messageOf(ALICE, BOB));
    await until("it is sent", () => calls.mock.calls.length === 1);
    pod.link.reconnect(new Error("given up by the test"));
    const answer = await outcome;
    const tookMs = performance.now() - sentAt;
    await bench.redis.resume();
    expect(answer).toEqual(UNAVAILABLE);
    expect(tookMs).toBeGreaterThanOrEqual(REDIS_LIMITS.commandTimeoutMs - 5);
  });

  test.each([
    ["Redis refused it", new ReplyError("OOM command not allowed")],
    ["Redis closed the connection", new Error("Connection is closed.")],
  ])("is over at once where %s", async (_, cause) => {
    jest.spyOn(pod.link, "run").mockRejectedValue(unavailable(cause));
    const refusal = pod.link.runByDeadline("accept", [], []).catch(({ code }) => code);
    expect(await Promise.race([refusal, new Promise((resolve) => setImmediate(resolve, "later"))])).toBe("unavailable");
  });
});

test("a script that Redis forgot is sent again under the deadline that it had, and carried out once", async () => {
  await bench.client.script("FLUSH");
  const calls = [jest.spyOn(pod.link.client, "evalsha"), jest.spyOn(pod.link.client, "eval")] as const;
  expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ outcome: "accepted" });
  const [named, given] = calls.map(({ mock }) => (mock.calls[0] as unknown[]).slice(1));
  expect(given).toEqual(named);
  expect((await bench.counters()).published_envelopes).toBe(1);
});

test("a process that could not run goes on where it was: what was answered meanwhile counts, and what it sends next", async () => {
  const first = pod.accept(messageOf(ALICE, BOB));
  await pod.link.command("PING");
  const end = performance.now() + 2 * REDIS_LIMITS.commandTimeoutMs;
  while (performance.now() < end);
  expect(await first).toMatchObject({ outcome: "accepted" });
  expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ outcome: "accepted" });
});

describe("when the clock of Redis is set", () => {
  const HOUR_MS = 3_600_000;
  let link: ClockedLink;

  beforeEach(async () => {
    link = await ClockedLink.of(bench);
    pod = await bench.pod({ link });
    await pod.register(BOB);
  });

  test.each([
    ["forward", HOUR_MS / 60],
    ["back", -HOUR_MS / 60],
  ])("%s, envelopes are accepted all the same", async (_, step) => {
    link.at = Date.now() + step;
    const outcomes = [await pod.accept(messageOf(ALICE, BOB)), await pod.accept(messageOf(ALICE, BOB))];
    expect(outcomes).toMatchObject(Array(2).fill({ outcome: "accepted" }));
  });

  test("back, a call that was sent before does nothing: nobody knows how late it comes", async () => {
    const { id } = await pod.window.known();
    const keys = [controlKeys.window, (await bench.wholeKeys()).feedback];
    const outcomeAt = async (deadline: number) => {
      const [outcome] = (await link.run("add_feedback", keys, [deadline, id, "total"])) as string[];
      return outcome;
    };
    expect(await outcomeAt(link.at + REDIS_LIMITS.commandTimeoutMs)).toBe("ok");
    expect(await outcomeAt(link.at)).toBe("ok");
    expect(await outcomeAt(link.at - 1)).toBe("late");
    expect(await outcomeAt(link.at + HOUR_MS)).toBe("late");
  });
});

test("who was refused for lateness alone knows that nothing was done", async () => {
  jest.spyOn(pod.link, "run").mockResolvedValue(["late", String(Date.now())]);
  expect(await pod.accept(messageOf(ALICE, BOB))).toEqual({ ...UNAVAILABLE, done: false });
});

describe("the time at Redis", () => {
  /** Unix ms at Redis when the monotonic clock here is at 0. */
  const AT_ZERO = 1_700_000_000_000;

  /** What a Redis tells that carries a command out at a monotonic time. */
  const tells = (at: number) => AT_ZERO + at;

  test("what the time at Redis is follows from an answer, and is never taken for later than it was", () => {
    const clock = new RedisClock();
    clock.told(tells(5), 0, 20);
    expect(clock.at(100)).toBe(tells(85));
  });

  test("of several answers the one counts that was read soonest, whatever kept this process from reading others", () => {
    const clock = new RedisClock();
    clock.told(tells(5), 0, 6);
    clock.told(tells(1000), 999, 4000);
    expect(clock.at(5000)).toBe(tells(4999));
  });

  test.each([
    ["forward", 3_600_000],
    ["back", -3_600_000],
  ])("one answer tells of a clock of Redis that was set %s", (_, step) => {
    const clock = new RedisClock();
    clock.told(tells(5), 0, 6);
    clock.told(tells(1001) + step, 1000, 1002);
    expect(clock.at(2000)).toBe(tells(1999) + step);
  });

  test("the time is read of INFO to the microsecond, and of an INFO without it none is", () => {
    expect(timeIn("# Server\r\nserver_time_usec:1700000000123456\r\nuptime_in_seconds:1")).toBe(1_700_000_000_123.456);
    expect(timeIn("# Memory\r\nused_memory:1")).toBeUndefined();
  });
});

describe("how far the clock of Redis is off", () => {
  let lines: [string, object][];
  let offset: ClockOffset;

  beforeEach(() => {
    lines = [];
    const logger = {
      warn: (context: object) => lines.push(["warn", context]),
      info: (context: object) => lines.push(["info", context]),
    };
    offset = new ClockOffset("gateway@1", logger as unknown as Logger);
  });

  test("a clock of Redis that is more than a second ahead or behind is told once, and once when it is right again", () => {
    for (const unixMs of [12_500, 12_600, 10_100, 8_000, 9_500]) offset.told(unixMs, 10_000, 10_200);
    expect(lines).toEqual([
      ["warn", { link: "gateway@1", offset_ms: 2300 }],
      ["info", { link: "gateway@1", offset_ms: 0 }],
      ["warn", { link: "gateway@1", offset_ms: -2000 }],
      ["info", { link: "gateway@1", offset_ms: -500 }],
    ]);
  });

  test("an answer that took long calls no clock wrong that may be right", () => {
    offset.told(10_000, 10_000, 15_000);
    offset.told(15_000, 10_000, 15_000);
    expect([offset.ms, lines]).toEqual([0, []]);
  });
});
