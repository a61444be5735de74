import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import { everythingIn, fillTo, unlimited } from "../../../test/support/test-redis.ts";
import { fakeTimers } from "../../../test/support/time.ts";
import { until } from "../../../test/support/until.ts";
import { countConnections, leaseConnections } from "../src/channel/pod-channel.ts";
import {
  AddressLimits,
  OwnCounts,
  type PublicLimit,
  RATE_WINDOW_SECONDS,
  RateLimit,
} from "../src/limits/rate-limit.ts";
import { PrincipalShares } from "../src/limits/shared-rates.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { OutOfReachError } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { ClockedLink, LOGGER, redisBench } from "./kit.ts";

const bench = redisBench();

describe("a limit of requests:", () => {
  const POINTS = 30;
  const PARTITIONS = 4;
  let link: RedisLink;

  beforeEach(async () => {
    link = await bench.link();
  });
  afterEach(() => {
    jest.useRealTimers();
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

  test("a key that has used up its limit is refused without Redis until its minute ends", async () => {
    const limit = limitOf("flood");
    await useTogether(limit, times(POINTS + 1, "one"));
    const key = partitionKeys.limit(0, "flood:one");
    await bench.client.del(key);
    // A clock that is set back prolongs nothing.
    jest.spyOn(Date, "now").mockReturnValue(Date.now() - 3_600_000);
    const usages = await useTogether(limit, times(100, "one"));
    for (const { allowed, resetMs } of usages) {
      expect(allowed).toBe(false);
      expect(resetMs).toBeGreaterThan(0);
      expect(resetMs).toBeLessThanOrEqual(RATE_WINDOW_SECONDS * 1000);
    }
    expect(await bench.client.exists(key)).toBe(0);
    expect(await limit.use("two")).toMatchObject({ allowed: true, remaining: POINTS - 1 });
    const ending = partitionKeys.limit(0, "flood:ending");
    await useTogether(limit, times(POINTS, "ending"));
    await bench.client.pexpire(ending, 20);
    expect(await limit.use("ending")).toMatchObject({ allowed: false });
    await until("its minute has ended", async () => (await limit.use("ending")).allowed);
  });

  test("over several partitions a key has one place, whichever gateway counts it", async () => {
    const calls = jest.spyOn(link, "run");
    const [here, there] = [limitOf("spread", link, PARTITIONS), limitOf("spread", await bench.link(), PARTITIONS)];
    const keys = Array.from({ length: 20 }, (_, n) => `sendMessage:key-${n}`);
    await useTogether(here, keys);
    expect(new Set((await useTogether(there, keys)).map(({ remaining }) => remaining))).toEqual(new Set([POINTS - 2]));
    expect(new Set(calls.mock.calls.map(([, [key]]) => slotOf(key as string))).size).toBe(PARTITIONS);
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

  test("a request that needs Redis for its limit alone is counted by the same limit when Redis is away", async () => {
    const idle = new RedisLink({ url: bench.redis.url, name: "idle", logger: LOGGER });
    const limit = limitOf("alone", idle);
    const usages = await Promise.all(times(POINTS + 1, "one").map((key) => limit.useAnyway(key)));
    expect(usages.map(({ allowed }) => allowed)).toEqual([...Array(POINTS).fill(true), false]);
    expect(await limitOf("alone").useAnyway("one")).toMatchObject({ remaining: POINTS - 1 });
  });

  test("while Redis is away an address has its limit of self-tests, and look-ups are unavailable", async () => {
    const { window } = await bench.pod();
    const idle = new RedisLink({ url: bench.redis.url, name: "idle", logger: LOGGER });
    const reached: string[] = [];
    const limits = new AddressLimits({
      ...{ link: idle, window, partitions: 1, requestsPerMinute: POINTS },
      limitReached: (name) => void reached.push(name),
    });
    const use = (name: PublicLimit) => limits.use(name, "203.0.113.7");
    for (let n = 0; n < POINTS; n += 1) await use("self_test");
    await expect(use("self_test")).rejects.toMatchObject({ code: "rate_limited" });
    await expect(use("check_online")).rejects.toMatchObject({ code: "unavailable" });
    expect(reached).toEqual(["self_test"]);
  });

  describe("while one partition is out of reach", () => {
    const KEYS = Array.from({ length: 20 }, (_, n) => `key-${n}`);
    const LOST = 2;
    const [there] = KEYS.filter((key) => partitionOf(key, PARTITIONS) === LOST) as [string];
    const [elsewhere] = KEYS.filter((key) => partitionOf(key, PARTITIONS) !== LOST) as [string];
    const lose = () => {
      const run = link.run.bind(link);
      const tag = partitionKeys.limit(LOST, "").slice(0, -1);
      return jest.spyOn(link, "run").mockImplementation(async (script, keys, args) => {
        if (keys[0]?.startsWith(tag)) throw new OutOfReachError(LOST);
        return await run(script, keys, args);
      });
    };

    test("a limit that is counted there is counted by this process, key by key, and by Redis again afterwards", async () => {
      const limit = limitOf("lost", link, PARTITIONS);
      await useTogether(limit, [there, elsewhere]);
      const loss = lose();
      const usages = await useTogether(limit, times(POINTS + 2, there));
      expect(usages.map(({ allowed }) => allowed)).toEqual([...Array(POINTS).fill(true), false, false]);
      for (const { resetMs } of usages) expect(resetMs).toBeGreaterThan(0);
      expect(await limit.use(elsewhere)).toMatchObject({ remaining: POINTS - 2 });
      loss.mockRestore();
      expect(await limit.use(there)).toMatchObject({ remaining: POINTS - 2 });
    });

    test("what this process counts ends with its minute", async () => {
      lose();
      fakeTimers();
      const limit = limitOf("lost-minute", link, PARTITIONS);
      await useTogether(limit, times(POINTS, there));
      jest.advanceTimersByTime(RATE_WINDOW_SECONDS * 1000 - 1);
      expect(await limit.use(there)).toMatchObject({ allowed: false });
      jest.advanceTimersByTime(1);
      expect(await limit.use(there)).toMatchObject({ allowed: true, remaining: POINTS - 1 });
    });
  });

  test("of keys that a process counts by itself the last 10,000 are kept", () => {
    const own = new OwnCounts(RATE_WINDOW_SECONDS * 1000);
    for (let n = 0; n < 10_001; n += 1) own.use(`key-${n}`);
    expect(["key-10000", "key-1", "key-0"].map((key) => own.use(key).used)).toEqual([2, 2, 1]);
  });

  test("a limit never asks on a link that was not started", async () => {
    const idle = new RedisLink({ url: bench.redis.url, name: "idle", logger: LOGGER });
    await expect(limitOf("idle", idle).use("one")).rejects.toMatchObject({ code: "unavailable" });
    expect(idle.client.status).toBe("wait");
  });
});

describe("what pods share:", () => {
  let link: ClockedLink;
  const ACME = "key:acme";
  const OTHER = "key:other";
  const podOf = (pod: string, partitions = 1) => new PrincipalShares({ link, partitions, pod });

  beforeEach(async () => {
    link = await ClockedLink.of(bench);
  });
  afterEach(() => unlimited(bench.client));

  describe("A limit of a principal", () => {
    test("is shared by the pods that lease it, each counted once, and by none for another principal or limit", async () => {
      const [a, b] = [podOf("a"), podOf("b")];
      expect(await a.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 1]]));
      expect(await a.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 1]]));
      expect(await b.lease("key_envelopes", [OTHER, ACME])).toEqual(
        new Map([
          [OTHER, 1],
          [ACME, 2],
        ]),
      );
      expect(await b.lease("key_bytes", [ACME])).toEqual(new Map([[ACME, 1]]));
    });

    test("is the other pods' again when a lease was not renewed in time, and not before", async () => {
      const [a, b] = [podOf("a"), podOf("b")];
      await a.lease("key_envelopes", [ACME]);
      link.at += REDIS_LIMITS.shareLeaseMs - 1;
      expect(await b.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 2]]));
      link.at += 1;
      expect(await b.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 1]]));
    });

    test("is in one place for all pods, whatever the number of partitions", async () => {
      const principals = Array.from({ length: 50 }, (_, n) => `key:k${n}` as const);
      await podOf("a", 16).lease("key_bytes", principals);
      const found = await podOf("b", 16).lease("key_bytes", principals);
      expect(found).toEqual(new Map(principals.map((principal) => [principal, 2])));
    });

    test("leaves nothing in Redis when nobody leases it any more, and never a name", async () => {
      expect(await podOf("a").lease("key_bytes", [])).toEqual(new Map());
      expect(await everythingIn(bench.client, "relay:*")).not.toContain("shares");
      await podOf("a").lease("key_bytes", [ACME]);
      expect(await everythingIn(bench.client, "relay:*")).not.toContain("acme");
      const [key] = await bench.client.keys(partitionKeys.shares(0, "*", "*"));
      const left = await bench.client.pttl(key as string);
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(REDIS_LIMITS.shareLeaseMs);
    });

    test("is shared while Redis is full, too", async () => {
      await fillTo(bench.client, 1.2);
      await podOf("a").lease("key_envelopes", [ACME]);
      expect(await podOf("b").lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 2]]));
    });

    test("is known of no principal that Redis did not answer for", async () => {
      const own = await bench.link();
      own.reconnect(new Error("given up by the test"));
      const shares = new PrincipalShares({ link: own, partitions: 1, pod: "a" });
      expect(await shares.lease("key_envelopes", [ACME])).toEqual(new Map());
    });
  });

  test("The connections of all pods are added up, each pod's as it told them last", async () => {
    expect(await countConnections(link)).toBe(0);
    await leaseConnections(link, "a", 3);
    await leaseConnections(link, "b", 20);
    await leaseConnections(link, "a", 1);
    expect(await countConnections(link)).toBe(21);
  });

  test("Those of a pod that tells no more are gone with its lease, and not before", async () => {
    await leaseConnections(link, "a", 3);
    link.at += REDIS_LIMITS.shareLeaseMs;
    await leaseConnections(link, "b", 20);
    expect(await countConnections(link)).toBe(23);
    link.at += 1;
    await leaseConnections(link, "b", 20);
    expect(await countConnections(link)).toBe(20);
  });

  test("Those of the last pod are forgotten with its lease", async () => {
    await leaseConnections(link, "a", 3);
    const left = await bench.client.pttl(controlKeys.connections);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(REDIS_LIMITS.shareLeaseMs);
  });

  test("A pod goes on telling them while Redis is full", async () => {
    await leaseConnections(link, "a", 3);
    await fillTo(bench.client, 1.1);
    await leaseConnections(link, "a", 4);
    expect(await countConnections(link)).toBe(4);
  });
});
