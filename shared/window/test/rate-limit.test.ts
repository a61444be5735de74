import { afterAll, beforeAll, expect, jest, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import { until } from "../../../test/support/until.ts";
import { RATE_WINDOW_SECONDS, RateLimit } from "../src/rate-limit.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { Bench, LOGGER } from "./kit.ts";

const POINTS = 30;
const PARTITIONS = 4;
const bench = new Bench();
let link: RedisLink;

beforeAll(async () => {
  await bench.open();
  link = await bench.link();
});
afterAll(async () => {
  await bench.clear();
  await bench.redis.stop();
});

const limitOf = (name: string, of = link, partitions = 1) =>
  new RateLimit({ link: of, partitions, name, most: POINTS });
const useTogether = (limit: RateLimit, keys: readonly string[]) => Promise.all(keys.map((key) => limit.use(key)));
const times = (count: number, key: string): string[] => Array(count).fill(key);

test("requests that come in together are let in up to the limit, in order of arrival, each with what it left", async () => {
  const limit = limitOf("together");
  const usages = await useTogether(limit, times(POINTS + 5, "one"));
  const remaining = Array.from({ length: POINTS }, (_, n) => POINTS - 1 - n);
  expect(usages.map((usage) => usage.remaining)).toEqual([...remaining, 0, 0, 0, 0, 0]);
  expect(usages.map(({ allowed }) => allowed)).toEqual([...Array(POINTS).fill(true), ...Array(5).fill(false)]);
  for (const { resetMs } of usages) expect(resetMs).toBeGreaterThan(0);
});

test("what was used before counts, whichever gateway counted it, refused requests too", async () => {
  const [here, there] = [limitOf("before"), limitOf("before", await bench.link())];
  await useTogether(here, times(POINTS - 2, "one"));
  const usages = await useTogether(there, times(3, "one"));
  expect(usages).toMatchObject([
    { allowed: true, remaining: 1 },
    { allowed: true, remaining: 0 },
    { allowed: false, remaining: 0 },
  ]);
  expect(await link.command("GET", partitionKeys.limit(0, "before:one"))).toBe(String(POINTS + 1));
});

test("keys that come in together are counted apart, in one call", async () => {
  const limit = limitOf("apart");
  await limit.use("warm");
  await link.command("CONFIG", "RESETSTAT");
  const usages = await useTogether(limit, ["a", "b", "a", "c", "a", "b"]);
  expect(usages.map((usage) => POINTS - usage.remaining)).toEqual([1, 1, 2, 1, 3, 2]);
  expect(await bench.commandCalls()).toMatchObject({ evalsha: 1, incrby: 3 });
});

test("with several partitions each call counts keys of one slot of a cluster, and a key has one place whoever counts it", async () => {
  const calls = jest.spyOn(link, "run");
  const [here, there] = [limitOf("spread", link, PARTITIONS), limitOf("spread", await bench.link(), PARTITIONS)];
  const keys = Array.from({ length: 20 }, (_, n) => `sendMessage:key-${n}`);
  await useTogether(here, keys);
  expect(new Set((await useTogether(there, keys)).map(({ remaining }) => remaining))).toEqual(new Set([POINTS - 2]));
  const slots = calls.mock.calls.map(([, counted]) => new Set(counted.map(slotOf)));
  expect(slots.map(({ size }) => size)).toEqual(Array(PARTITIONS).fill(1));
  calls.mockRestore();
});

test("a limit's minute begins with its first request, and no later one prolongs it", async () => {
  const limit = limitOf("minute");
  await limit.use("one");
  const key = partitionKeys.limit(0, "minute:one");
  expect(await bench.client.pttl(key)).toBeGreaterThan(RATE_WINDOW_SECONDS * 1000 - 10_000);
  await bench.client.pexpire(key, 5000);
  expect((await limit.use("one")).resetMs).toBeLessThanOrEqual(5000);
  expect(await bench.client.pttl(key)).toBeLessThanOrEqual(5000);
});

test("a limit that cannot be asked refuses all that wait for it as unavailable, and counts again afterwards", async () => {
  const own = await bench.link();
  const limit = limitOf("away", own);
  own.reconnect(new Error("given up by the test"));
  const answers = await Promise.allSettled([limit.use("one"), limit.use("one"), limit.use("two")]);
  for (const answer of answers) expect(answer).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
  await until("the link is up again", () => own.up);
  expect(await limit.use("one")).toMatchObject({ allowed: true, remaining: POINTS - 1 });
});

test("a limit never asks on a link that was not started", async () => {
  const idle = new RedisLink({ url: bench.redis.url, name: "idle", logger: LOGGER });
  await expect(limitOf("idle", idle).use("one")).rejects.toMatchObject({ code: "unavailable" });
  expect(idle.client.status).toBe("wait");
});
