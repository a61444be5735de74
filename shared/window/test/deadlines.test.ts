import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { ReplyError } from "ioredis";
import { until } from "../../../test/support/until.ts";
import type { Acceptance } from "../src/acceptance/acceptance.ts";
import { addFeedback } from "../src/feedback.ts";
import { controlKeys } from "../src/redis/keys.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { unavailable } from "../src/unavailable.ts";
import { claimOf, decisionOf, envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Ear, type Pod, whileRedisHangs } from "./kit.ts";

const bench = new Bench();
const [ALICE, BOB] = ["agent://alice", "agent://bob"];
const UNAVAILABLE = { outcome: "unavailable" };
let pod: Pod;
let ear: Ear;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod();
  ear = await bench.ear("pod-a");
  await pod.register(BOB);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await bench.clear();
});
afterAll(() => bench.redis.stop());

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

test("a script that Redis forgot is sent again under the deadline that it had", async () => {
  await bench.client.script("FLUSH");
  const calls = [jest.spyOn(pod.link.client, "evalsha"), jest.spyOn(pod.link.client, "eval")] as const;
  expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ outcome: "accepted" });
  const [named, given] = calls.map(({ mock }) => (mock.calls[0] as unknown[]).slice(1));
  expect(given).toEqual(named);
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
