import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { WINDOW_LIMITS } from "protocol/contract/limits.ts";
import type { SurfaceId } from "protocol/contract/surfaces.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { Counters } from "../src/counters.ts";
import { JourneysCopy } from "../src/journeys.ts";
import { type Journey, parseJourney } from "../src/records/journey.ts";
import { resetWindow } from "../src/reset.ts";
import { Bench, type Pod } from "./kit.ts";

const SURFACE_IDS: readonly SurfaceId[] = ["trafficDaily", "selfTest", "sendMessage", "requestSession"];
const HOUR_MICROS = 3_600_000_000;

const bench = new Bench();
let pod: Pod;
let counters: Counters;
let copy: JourneysCopy;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod();
  counters = new Counters({ link: pod.link, window: pod.window });
  copy = new JourneysCopy(pod.link, pod.window);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await bench.clear();
});
afterAll(() => bench.redis.stop());

/** All that Redis has, whoever read what before. */
async function journeysInRedis(): Promise<Journey[]> {
  return (await bench.client.hvals((await bench.wholeKeys()).journeys)).map(parseJourney);
}

/** Visitors seen within the same millisecond stand in any order. */
const asSet = (journeys: readonly Journey[]) =>
  journeys.map((journey) => JSON.stringify({ ...journey, stages: [...journey.stages] })).sort();

async function expectAllThatRedisHas(read: readonly Journey[]): Promise<void> {
  expect(asSet(read)).toEqual(asSet(await journeysInRedis()));
  const seen = read.map(({ lastSeen }) => lastSeen);
  expect(seen).toEqual(seen.toSorted((a, b) => b - a));
}

async function visit(...visitors: readonly string[]): Promise<void> {
  for (const visitor of visitors) counters.act("sendMessage", visitor);
  await counters.flush();
}

async function openNextWindow(): Promise<void> {
  await resetWindow(pod.link, { partitions: 1, deployId: "next", force: true });
  await pod.window.adoptOpenWindow();
}

/** The last thing written of a visitor's journey has this version, by the clock as it was then. */
async function setVersion(visitor: string, version: number): Promise<void> {
  const { journeyVersions, lastJourneyVersion } = await bench.wholeKeys();
  await bench.client.hset(journeyVersions, visitor, version);
  await bench.client.set(lastJourneyVersion, version);
}

/** How many journeys left Redis for one read. */
async function journeysSentFor(read: () => Promise<unknown>): Promise<number> {
  const run = jest.spyOn(pod.link, "run");
  await read();
  const replies = await Promise.all(run.mock.results.map(({ value }) => value as Promise<string[]>));
  run.mockRestore();
  return replies.reduce((sent, reply) => sent + (reply.length - 1) / 2, 0);
}

/** What a replica had that takes over later: everything written in between is gone then. */
async function replicaOfNow(): Promise<() => Promise<void>> {
  const { journeys, journeysSeen, journeyVersions, lastJourneyVersion } = await bench.wholeKeys();
  const keys = [journeys, journeysSeen, journeyVersions, lastJourneyVersion];
  const dumps = await Promise.all(keys.map((key) => bench.client.dumpBuffer(key)));
  return async () => {
    for (const [n, key] of keys.entries()) await bench.client.restore(key, 0, dumps[n] as Buffer, "REPLACE");
  };
}

describe("a copy of the journeys", () => {
  test("is at each read all that Redis has, whatever was written between, by whom, and who reads beside it", async () => {
    const step = fc.record({
      writer: fc.nat(1),
      visits: fc.array(fc.tuple(fc.nat(250), fc.nat(SURFACE_IDS.length - 1), fc.integer({ min: 1, max: 60 })), {
        maxLength: 120,
      }),
      readers: fc.array(fc.nat(2), { maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
        await openNextWindow();
        const writers = [counters, new Counters({ link: pod.link, window: pod.window })] as const;
        const readers = [copy, ...[1, 2].map(() => new JourneysCopy(pod.link, pod.window))];
        for (const { writer, visits, readers: reading } of steps) {
          for (const [visitor, surface, times] of visits) {
            for (let n = 0; n < times; n += 1) {
              (writers[writer] as Counters).act(SURFACE_IDS[surface] as SurfaceId, `visitor-${visitor}`);
            }
          }
          await (writers[writer] as Counters).flush();
          for (const read of await Promise.all(reading.map((n) => (readers[n] as JourneysCopy).read()))) {
            await expectAllThatRedisHas(read);
          }
        }
      }),
      { numRuns: 15 },
    );
  });

  test("has Redis send what changed, and nothing when nothing did; what did not change stays the same object", async () => {
    await visit("one", "two", "three");
    const before = await copy.read();
    await visit("two");
    expect(await journeysSentFor(() => copy.read())).toBe(1);
    expect((await copy.read()).filter((journey) => before.includes(journey))).toHaveLength(2);
    expect(await journeysSentFor(() => copy.read())).toBe(0);
  });

  test("has none of a visitor that gave way", async () => {
    const early = Array.from({ length: WINDOW_LIMITS.journeys }, (_, n) => `early-${n}`);
    await visit(...early);
    await copy.read();
    await visit("late-1", "late-2");
    expect(await journeysSentFor(() => copy.read())).toBe(2);
    await expectAllThatRedisHas(await copy.read());
    const { journeyVersions } = await bench.wholeKeys();
    expect(await bench.client.hlen(journeyVersions)).toBe(WINDOW_LIMITS.journeys);
  });

  test("ends with its window", async () => {
    await visit("one", "two");
    await copy.read();
    await openNextWindow();
    expect(await copy.read()).toEqual([]);
    await visit("three");
    await expectAllThatRedisHas(await copy.read());
  });

  test("is of its window alone, even where the clock stepped back and a version is there again", async () => {
    await visit("one");
    await setVersion("one", 7);
    await copy.read();
    await openNextWindow();
    await visit("two", "two");
    await setVersion("two", 7);
    await expectAllThatRedisHas(await copy.read());
  });

  test("goes back to what a promotion brought back, and on from there", async () => {
    await visit("one", "two");
    const promote = await replicaOfNow();
    await copy.read();
    await visit("one", "three");
    await copy.read();
    await promote();
    await expectAllThatRedisHas(await copy.read());
    expect(await copy.read()).toHaveLength(2);
    await visit("one", "four");
    await expectAllThatRedisHas(await copy.read());
  });

  test("takes nothing for known that was written after a promotion, as much as was lost with it", async () => {
    await visit("one");
    const promote = await replicaOfNow();
    await visit("two", "three");
    await copy.read();
    await promote();
    await visit("four", "five");
    await expectAllThatRedisHas(await copy.read());
  });

  test("is right after the clock of Redis stepped back", async () => {
    await visit("one", "two");
    await setVersion("one", Date.now() * 1000 + HOUR_MICROS);
    await copy.read();
    await visit("two", "three");
    expect(await journeysSentFor(() => copy.read())).toBe(2);
    await expectAllThatRedisHas(await copy.read());
  });

  test.each([
    ["higher than all", Date.now() * 1000 + HOUR_MICROS],
    ["lower than all", 1],
  ])("is read though a version has no journey: one %s", async (_, version) => {
    const { journeyVersions } = await bench.wholeKeys();
    await visit("one");
    await bench.client.hset(journeyVersions, "stray", version);
    await expectAllThatRedisHas(await copy.read());
    await visit("one", "two");
    await expectAllThatRedisHas(await copy.read());
  });

  test("that was refused once is what it was before", async () => {
    await visit("one");
    await copy.read();
    await visit("two");
    jest.spyOn(pod.link, "run").mockRejectedValueOnce(new Error("unavailable"));
    await expect(copy.read()).rejects.toThrow();
    await expectAllThatRedisHas(await copy.read());
  });
});
