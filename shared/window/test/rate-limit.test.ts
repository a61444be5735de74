import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { RateLimit } from "../src/rate-limit.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { Bench, LOGGER } from "./kit.ts";

const POINTS = 30;
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

const useTogether = (limit: RateLimit, keys: readonly string[]) => Promise.all(keys.map((key) => limit.use(key)));
const times = (count: number, key: string): string[] => Array(count).fill(key);

test("requests that come in together are let in up to the limit, in order of arrival, each with what it left", async () => {
  const limit = new RateLimit(link, "together", POINTS);
  const usages = await useTogether(limit, times(POINTS + 5, "one"));
  const remaining = Array.from({ length: POINTS }, (_, n) => POINTS - 1 - n);
  expect(usages.map((usage) => usage.remaining)).toEqual([...remaining, 0, 0, 0, 0, 0]);
  expect(usages.map(({ allowed }) => allowed)).toEqual([...Array(POINTS).fill(true), ...Array(5).fill(false)]);
  for (const { resetMs } of usages) expect(resetMs).toBeGreaterThan(0);
});

test("what was used before counts, whichever gateway counted it, refused requests too", async () => {
  const [here, there] = [new RateLimit(link, "before", POINTS), new RateLimit(await bench.link(), "before", POINTS)];
  await useTogether(here, times(POINTS - 2, "one"));
  const usages = await useTogether(there, times(3, "one"));
  expect(usages).toMatchObject([
    { allowed: true, remaining: 1 },
    { allowed: true, remaining: 0 },
    { allowed: false, remaining: 0 },
  ]);
  expect(await link.command("GET", "relay:limit:before:one")).toBe(String(POINTS + 1));
});

test("keys that come in together are counted apart, each in one step", async () => {
  const limit = new RateLimit(link, "apart", POINTS);
  await limit.use("warm");
  await link.command("CONFIG", "RESETSTAT");
  const usages = await useTogether(limit, ["a", "b", "a", "c", "a", "b"]);
  expect(usages.map((usage) => POINTS - usage.remaining)).toEqual([1, 1, 2, 1, 3, 2]);
  expect(await link.command("INFO", "commandstats")).toMatch(/cmdstat_incrby:calls=3,/);
});

test("a limit that cannot be asked refuses all that wait for it as unavailable, and counts again afterwards", async () => {
  const own = await bench.link();
  const limit = new RateLimit(own, "away", POINTS);
  own.reconnect(new Error("given up by the test"));
  const answers = await Promise.allSettled([limit.use("one"), limit.use("one"), limit.use("two")]);
  for (const answer of answers) expect(answer).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
  await until("the link is up again", () => own.up);
  expect(await limit.use("one")).toMatchObject({ allowed: true, remaining: POINTS - 1 });
});

test("a limit never asks on a link that was not started", async () => {
  const idle = new RedisLink({ url: bench.redis.url, name: "idle", logger: LOGGER });
  await expect(new RateLimit(idle, "idle", POINTS).use("one")).rejects.toMatchObject({ code: "unavailable" });
  expect(idle.client.status).toBe("wait");
});
