import { describe, expect, test } from "@jest/globals";
import type { PrincipalShares } from "relay-window/limits/shared-rates.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { PrincipalRates, ShareLeases } from "../src/throttle/rates.ts";

const KEY = "key:k";
const PER_SECOND = 80;
const BURST = 100;
const STEP_MS = 5;
/** How long before the end of a second the first pod renews: a key that begins with the second has most of it unseen. */
const LATE_MS = 200;
/** What a pod may let through before it knows of the others: its burst, and the rate until its lease is answered. */
const HEAD_START = BURST + 2 * PER_SECOND;
const { shareRenewMs, shareLeaseMs } = REDIS_LIMITS;

/** How fast a key sends at one pod, second after second, over and over: shares of the rate, or as fast as it is let. */
type Demand = readonly number[];
const FLOOD: Demand = [Number.POSITIVE_INFINITY];

interface SimulatedPod {
  readonly rates: PrincipalRates;
  readonly demand: Demand;
  /** Envelopes that the key would like to have sent by now, and has not. */
  due: number;
  passed: number;
}

/** Pods that share the rate of one key by leases, on a clock of their own; each renews at another moment of the second. */
class Fleet {
  readonly #pods: readonly SimulatedPod[];
  /** When the lease of each pod ends. */
  readonly #leases = new Map<number, number>();
  #now = 0;
  /** The longest that an envelope had to wait. */
  longestWait = 0;

  constructor(demands: readonly Demand[]) {
    this.#pods = demands.map((demand) => ({ rates: new PrincipalRates(PER_SECOND, BURST), demand, due: 0, passed: 0 }));
  }

  /** How many envelopes all pods let through in so many seconds. */
  run(seconds: number): number {
    const before = this.#passedInAll();
    const end = this.#now + seconds * 1000;
    for (; this.#now < end; this.#now += STEP_MS) {
      for (const [n, pod] of this.#pods.entries()) this.#step(n, pod);
    }
    return this.#passedInAll() - before;
  }

  passedAt(n: number): number {
    return this.#pods[n]?.passed as number;
  }

  get leaseCount(): number {
    return this.#leases.size;
  }

  #passedInAll(): number {
    return this.#pods.reduce((sum, { passed }) => sum + passed, 0);
  }

  #step(n: number, pod: SimulatedPod): void {
    const demand = pod.demand[Math.floor(this.#now / 1000) % pod.demand.length] as number;
    pod.due = demand === Number.POSITIVE_INFINITY ? demand : pod.due + (demand * PER_SECOND * STEP_MS) / 1000;
    while (pod.due >= 1) {
      const wait = pod.rates.take(KEY, this.#now, 0);
      this.longestWait = Math.max(this.longestWait, wait);
      if (wait > 0) break;
      pod.rates.take(KEY, this.#now);
      pod.passed += 1;
      pod.due -= 1;
    }
    // What a client could not send it does not make up for.
    if (pod.due >= 1) pod.due = 0;
    if ((this.#now + LATE_MS - n * 35) % shareRenewMs < STEP_MS) this.#renew(n, pod.rates);
  }

  #renew(n: number, rates: PrincipalRates): void {
    for (const [pod, end] of this.#leases) if (end <= this.#now) this.#leases.delete(pod);
    const hot = rates.aboveHalf(this.#now);
    if (hot.length > 0) this.#leases.set(n, this.#now + shareLeaseMs);
    rates.share(new Map(hot.map((principal) => [principal, this.#leases.size])));
  }
}

const pods = fc.integer({ min: 2, max: 20 });
const level = fc.constantFrom(0, 0.2, 0.45, 0.55, 0.9, 3, Number.POSITIVE_INFINITY);
const demands = fc.array(fc.array(level, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 5 });

describe("Over all pods a key", () => {
  test("that floods each of them has one rate once each knows of the others, for as long as it floods", () => {
    fc.assert(
      fc.property(pods, (count) => {
        const fleet = new Fleet(Array(count).fill(FLOOD));
        fleet.run(3);
        const passed = fleet.run(20);
        expect(passed).toBeLessThanOrEqual(PER_SECOND * 20 + count);
        expect(passed).toBeGreaterThan(PER_SECOND * 20 * 0.9);
      }),
      { numRuns: 10 },
    );
  });

  test.each([
    ["by fits and starts", [Number.POSITIVE_INFINITY, 0, 0]],
    ["in every other second", [Number.POSITIVE_INFINITY, 0]],
    ["just below half of its rate", [0.49]],
  ])("that sends %s at each of them has no more than half of a rate for each pod, and half of one", (_how, demand) => {
    const fleet = new Fleet(Array(4).fill(demand));
    expect(fleet.run(60)).toBeLessThanOrEqual((PER_SECOND / 2) * 5 * 60 + 4 * HEAD_START);
  });

  test("has no more than that however it sends", () => {
    fc.assert(
      fc.property(demands, (all) => {
        const most = (PER_SECOND / 2) * (all.length + 1) * 30 + all.length * HEAD_START;
        expect(new Fleet(all).run(30)).toBeLessThanOrEqual(most);
      }),
      { numRuns: 40 },
    );
  });

  test("that keeps to one rate never waits, wherever it sends how much of it", () => {
    const parts = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(parts, (all) => {
        const sum = all.reduce((a, b) => a + b);
        const fleet = new Fleet(all.map((part) => [(0.95 * part) / sum]));
        fleet.run(20);
        expect(fleet.longestWait).toBe(0);
      }),
      { numRuns: 20 },
    );
  });

  test("that floods two of them has the whole rate at one again, soon after it left the other", () => {
    const fleet = new Fleet([FLOOD, [...Array(5).fill(Number.POSITIVE_INFINITY), ...Array(35).fill(0)]]);
    fleet.run(20);
    const before = fleet.passedAt(0);
    fleet.run(10);
    expect(fleet.passedAt(0) - before).toBeGreaterThan(PER_SECOND * 10 * 0.95);
  });

  test("that is below half of its rate everywhere leases nothing", () => {
    const fleet = new Fleet([[0.45], [0.2], [0.45, 0]]);
    fleet.run(20);
    expect(fleet.leaseCount).toBe(0);
  });
});

describe("A pod", () => {
  test("that shares a key's rate with two others gives it a third of rate and burst, and another key its own", () => {
    const rates = new PrincipalRates(PER_SECOND, BURST);
    rates.share(new Map([[KEY, 3]]));
    const atOnce = (principal: "key:k" | "key:other") => {
      let count = 0;
      for (; rates.take(principal, 0, 0) === 0; count += 1) rates.take(principal, 0);
      return count;
    };
    expect(atOnce(KEY)).toBeCloseTo(BURST / 3, -0.5);
    expect(atOnce("key:other")).toBe(BURST);
    rates.share(new Map());
    for (const now of [60_000, 120_000]) rates.endMinute(now);
    expect([...rates.sent()]).toEqual([]);
  });

  test("finds no principal above half of a rate that has no limit", () => {
    const rates = new PrincipalRates(0, 0);
    for (let n = 0; n < 1000; n += 1) rates.take(KEY, 1);
    expect(rates.aboveHalf(1)).toEqual([]);
  });
});

describe("Leases:", () => {
  const KEY = "key:k";
  type Lease = PrincipalShares["lease"];

  /** Rates of 10 a second and 10 at once, and leases of them. */
  function leasing(lease: Lease) {
    const rates = { principals: new PrincipalRates(10, 10), principalBytes: new PrincipalRates(10, 10) };
    return { ...rates, leases: new ShareLeases({ lease }, rates) };
  }

  const takeMany = (rates: PrincipalRates, count: number) => {
    for (let n = 0; n < count; n += 1) rates.take(KEY, performance.now());
  };

  test("Each of the two limits of a key is leased by itself, where it is above half of it", async () => {
    const asked: unknown[] = [];
    const { principals, principalBytes, leases } = leasing(async (...call) => {
      asked.push(call);
      return new Map();
    });
    takeMany(principals, 9);
    takeMany(principalBytes, 4);
    await leases.renew();
    expect(asked).toEqual([
      ["key_envelopes", [KEY]],
      ["key_bytes", []],
    ]);
  });

  test("A renewal without an answer leaves the pod's own limit in force, whatever the one before it said", async () => {
    let answer = new Map([[KEY, 5] as const]);
    const { principals, leases } = leasing(async () => answer);
    const now = performance.now() + 60_000;
    takeMany(principals, 9);
    await leases.renew();
    principals.take(KEY, now, 2);
    expect(principals.take(KEY, now, 0)).toBeGreaterThan(0);
    answer = new Map();
    await leases.renew();
    const later = now + 60_000;
    principals.take(KEY, later, 9);
    expect(principals.take(KEY, later, 0)).toBe(0);
  });
});
