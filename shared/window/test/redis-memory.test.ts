import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { createLogger } from "relay-runtime/logging.ts";
import { emptyAgain, everythingIn, fillTo, unlimited } from "../../../test/support/test-redis.ts";
import { fakeTimers } from "../../../test/support/time.ts";
import { until } from "../../../test/support/until.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { ALICE, BOB, CAROL, claimOf, decisionOf, delivery, envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
const REFUSED = { outcome: "over_capacity" };
const CLAIM = claimOf("key-1", "body");
const NEW_CLAIM = { origin: "gateway", claim: claimOf("key-2", "body") } as const;

let pod: Pod;
let log: { readonly level: string; readonly msg: string }[];

/** Links look at their Redis when the test says so. */
beforeEach(() => fakeTimers("setTimeout", "clearTimeout"));
beforeEach(async () => {
  await bench.open();
  log = [];
  const logger = createLogger({ service: "test", level: "debug" }, { write: (line) => log.push(JSON.parse(line)) });
  pod = await bench.pod({ logger });
  await pod.register(ALICE);
  await pod.register(BOB);
});
afterEach(async () => {
  await unlimited(bench.client);
  await bench.clear();
  jest.useRealTimers();
});
afterAll(() => bench.redis.stop());

const look = () => void jest.advanceTimersByTime(REDIS_LIMITS.pingIntervalMs);

async function becomeShort(): Promise<void> {
  await fillTo(bench.client, 0.8);
  look();
  await until("it is noticed that memory is short", () => pod.link.memory.isShort);
}

async function getMemoryBack(): Promise<void> {
  await emptyAgain(bench.client);
  look();
  await until("it is noticed that there is memory again", () => !pod.link.memory.isShort);
}

describe("while Redis is short of memory", () => {
  test("what needs new room is refused and leaves no trace, and the same envelopes are accepted once there is room", async () => {
    await becomeShort();
    const register = envelopeOf("agent.register", CAROL);
    const heartbeat = envelopeOf("agent.heartbeat", "agent://dora");
    const request = requestOf(ALICE, BOB);
    const message = messageOf(ALICE, BOB);
    const sendAll = () =>
      Promise.all([
        pod.accept(register),
        pod.accept(heartbeat),
        pod.accept(request),
        pod.accept(message, NEW_CLAIM),
        pod.accept(requestOf(ALICE, BOB), { origin: "gateway", claim: claimOf("key-3", "body") }),
      ]);
    const before = await everythingIn(bench.client, "relay:*");
    expect(await sendAll()).toEqual(Array(5).fill(REFUSED));
    expect(await everythingIn(bench.client, "relay:*")).toEqual(before);
    await getMemoryBack();
    expect(await sendAll()).toMatchObject(Array(5).fill({ outcome: "accepted" }));
  });

  test("agents that are present go on: registers, heartbeats, messages and decisions", async () => {
    const { sessionId } = await pod.request(ALICE, BOB);
    await becomeShort();
    const ear = await bench.ear("pod-a");
    expect(await pod.register(ALICE, "c2")).toMatchObject({ outcome: "accepted", status: "online" });
    expect(await pod.heartbeat(BOB)).toMatchObject({ outcome: "accepted", status: "online" });
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ outcome: "accepted", delivery: "online" });
    expect(await pod.take(decisionOf("approve", BOB, ALICE, sessionId as string))).toMatchObject({
      outcome: "accepted",
      sessionStatus: "approved",
    });
    expect((await ear.lines()).map((line) => line.split(" ")[0])).toEqual(["superseded", "deliver", "deliver"]);
  });

  test("an agent that left is let in again for as long as its presence is kept", async () => {
    await bench.client.hdel((await bench.keys()).route, BOB);
    await bench.client.zrem((await bench.keys()).online, BOB);
    await becomeShort();
    expect(await pod.heartbeat(BOB)).toMatchObject({ outcome: "accepted", status: "online" });
  });

  test("a repeat is answered as one, and a known Idempotency-Key with its first answer", async () => {
    const request = requestOf(ALICE, BOB);
    const { sessionId } = delivery(await pod.accept(request));
    await pod.accept(messageOf(ALICE, BOB), { origin: "gateway", claim: CLAIM });
    await becomeShort();
    expect(await pod.accept(request)).toMatchObject({ outcome: "duplicate", sessionId });
    expect(await pod.accept(messageOf(ALICE, BOB), { origin: "gateway", claim: CLAIM })).toMatchObject({
      outcome: "replayed",
    });
  });
});

describe("Redis is short of memory", () => {
  test("from three quarters on until it is below seven tenths, and says so once each time", async () => {
    const { memory } = pod.link;
    const settles = async (share: number) => {
      await fillTo(bench.client, share);
      look();
      await until(`${share} was read`, () => Math.abs(memory.ratio - share) < 0.02);
      return memory.isShort;
    };
    expect(await settles(0.72)).toBe(false);
    expect(await settles(0.78)).toBe(true);
    expect(await settles(0.72)).toBe(true);
    expect(await settles(0.66)).toBe(false);
    const told = log.filter(({ msg }) => /memory/.test(msg)).map(({ level }) => level);
    expect(told).toEqual(["warn", "info"]);
  });

  test("on a link from before it is up, and never where it has no limit", async () => {
    await fillTo(bench.client, 0.8);
    expect((await bench.link()).memory.isShort).toBe(true);
    await bench.client.config("SET", "maxmemory", "0");
    expect((await bench.link()).memory).toMatchObject({ isShort: false, ratio: 0 });
  });
});

describe("a full Redis", () => {
  test("takes all of a call or nothing, whatever is in it: the same envelopes are accepted once there is room", async () => {
    const { sessionId } = await pod.request(ALICE, BOB);
    const decision = decisionOf("approve", BOB, ALICE, sessionId as string);
    await fillTo(bench.client, 1.2);
    const ear = await bench.ear("pod-a");
    const before = await everythingIn(bench.client, "relay:*");
    const envelopes = [
      requestOf(BOB, ALICE),
      envelopeOf("agent.heartbeat", ALICE),
      messageOf(ALICE, BOB),
      envelopeOf("agent.register", BOB),
      messageOf(ALICE, BOB),
    ];
    expect(await pod.acceptAll(...envelopes)).toEqual(Array(5).fill({ outcome: "unavailable" }));
    expect(await everythingIn(bench.client, "relay:*")).toEqual(before);
    expect(await ear.lines()).toEqual([]);
    expect(await pod.take(decision)).toEqual({ outcome: "unavailable" });
    expect(await everythingIn(bench.client, "relay:*")).toEqual(before);
    await getMemoryBack();
    expect(await pod.acceptAll(...envelopes)).toMatchObject(Array(5).fill({ outcome: "accepted" }));
    expect(await pod.take(decision)).toMatchObject({ outcome: "accepted", sessionStatus: "approved" });
  });

  test("is known from its first refusal on and told once; the link stays up, and what gives room is done", async () => {
    await fillTo(bench.client, 1.2);
    for (let n = 0; n < 5; n += 1) await pod.accept(messageOf(ALICE, BOB));
    expect(pod.link.up).toBe(true);
    expect(pod.link.memory.isShort).toBe(true);
    expect(log.filter(({ level }) => level === "warn").map(({ msg }) => msg)).toEqual(["redis is full"]);
    const owner = (await bench.routes())[ALICE] as string;
    expect(
      await pod.link.run("release", [(await bench.keys()).online, (await bench.keys()).route], [ALICE, owner]),
    ).toBe(1);
  });
});
