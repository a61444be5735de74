import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { until } from "../../../test/support/until.ts";
import { Counters } from "../src/counters/counters.ts";
import { type Journey, JourneysCopy, parseJourney } from "../src/counters/journeys.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { unavailable } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { resetWindow } from "../src/window/reset.ts";
import { type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let pod: Pod;
let counters: Counters;
let copy: JourneysCopy;

beforeEach(async () => {
  pod = await bench.pod();
  counters = new Counters({ link: pod.link, window: pod.window });
  copy = new JourneysCopy(pod.link, pod.window);
});

const journeys = () => new JourneysCopy(pod.link, pod.window).read();
const namesOf = ({ actions }: Journey) => actions.map(({ name }) => name);

describe("a journey", () => {
  test("holds what a visitor did, views and posts, in order, over several writes", async () => {
    const before = Date.now();
    counters.view("signingManifest", "visitor-1");
    counters.act("selfTest", "visitor-1");
    await counters.flush();
    counters.view("checkOnline", "visitor-1");
    counters.act("requestSession", "visitor-1");
    await counters.flush();
    const [journey, ...others] = await journeys();
    expect(others).toEqual([]);
    expect(journey && namesOf(journey)).toEqual(["signingManifest", "selfTest", "checkOnline", "requestSession"]);
    const times = journey?.actions.map(({ at }) => at) as number[];
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(journey).toMatchObject({ count: 4, firstSeen: times[0], lastSeen: times[3] });
    expect(times[0]).toBeGreaterThanOrEqual(before - 1);
    expect(times[3]).toBeLessThanOrEqual(Date.now());
  });

  test("is one over all services that the visitor used, in the order of its actions whoever writes first", async () => {
    const other = new Counters({ link: pod.link, window: pod.window });
    // Long before: what Redis notes of an action is as exact as the call that brings it is fast.
    const before = performance.now() - REDIS_LIMITS.countsHeldMs / 2;
    const clock = jest.spyOn(performance, "now").mockReturnValue(before);
    counters.view("trafficDaily", "visitor-1");
    clock.mockRestore();
    other.act("requestSession", "visitor-1");
    await other.flush();
    await counters.flush();
    const [journey] = await journeys();
    expect(journey && namesOf(journey)).toEqual(["trafficDaily", "requestSession"]);
    expect(journey?.firstSeen).toBeLessThan(journey?.lastSeen as number);
  });

  test("of a visitor that only posts counts as a session too", async () => {
    counters.act("sendMessage", "visitor-1");
    await counters.flush();
    const { visitors, traffic } = await readSnapshot(pod.link, pod.window);
    expect({ visitors, views: traffic.get("surface_views"), kept: (await journeys()).length }).toEqual({
      visitors: 1,
      views: undefined,
      kept: 1,
    });
  });

  test("keeps its times when a write had to wait", async () => {
    counters.act("sendMessage", "visitor-1");
    const doneAt = Date.now();
    jest.spyOn(pod.link, "run").mockRejectedValueOnce(unavailable());
    await counters.flush();
    await until("a while passes", () => Date.now() > doneAt + 400);
    await counters.flush();
    const lastSeen = (await journeys())[0]?.lastSeen as number;
    expect(lastSeen).toBeGreaterThanOrEqual(doneAt - 2);
    // The write itself may have taken long.
    expect(lastSeen).toBeLessThanOrEqual(Date.now() - 400 + 2);
  });

  test("keeps its last 50 actions and counts them all, in one write or in many", async () => {
    for (let n = 0; n < 60; n += 1) counters.act("sendMessage", "one-write");
    await counters.flush();
    for (let n = 0; n < 60; n += 1) {
      counters.act(n < 10 ? "selfTest" : "sendMessage", "many-writes");
      if (n % 7 === 0) await counters.flush();
    }
    await counters.flush();
    const [many, one] = await journeys();
    const last50 = Array(WINDOW_LIMITS.actionsPerJourney).fill("sendMessage");
    expect(one && { names: namesOf(one), count: one.count }).toEqual({ names: last50, count: 60 });
    expect(many && { names: namesOf(many), count: many.count }).toEqual({ names: last50, count: 60 });
  });
});

describe("the stages that a journey reached", () => {
  const READS = WINDOW_LIMITS.actionsPerJourney + 1;
  const reached = async () => [...((await journeys())[0] as Journey).stages];

  test("are those of all its actions, in one write or in many", async () => {
    counters.act("selfTest", "visitor-1");
    counters.act("submitFeedback", "visitor-1");
    await counters.flush();
    counters.act("requestSession", "visitor-1");
    await counters.flush();
    expect(await reached()).toEqual(["connector_onboarding", "session_negotiation", "feedback"]);
  });

  test.each([
    ["the same write", false],
    ["a later one", true],
  ])("are kept when reads of %s push the actions out that reached them", async (_, later) => {
    counters.act("requestSession", "visitor-1");
    counters.act("submitFeedback", "visitor-1");
    if (later) await counters.flush();
    for (let n = 0; n < READS; n += 1) counters.view("trafficDaily", "visitor-1");
    await counters.flush();
    const [journey] = await journeys();
    expect(new Set(journey && namesOf(journey))).toEqual(new Set(["trafficDaily"]));
    expect(await reached()).toEqual(["discovery", "session_negotiation", "feedback"]);
  });
});

describe("of journeys", () => {
  test("200 are kept, those of the visitors seen last, in one write or in many", async () => {
    for (let n = 0; n < 100; n += 1) counters.act("sendMessage", `early-${n}`);
    await counters.flush();
    for (let n = 0; n < 150; n += 1) counters.act("sendMessage", `late-${n}`);
    counters.act("sendMessage", "early-0");
    await counters.flush();
    const kept = await bench.client.hkeys((await bench.wholeKeys()).journeys);
    expect(kept.length).toBe(WINDOW_LIMITS.journeys);
    expect(kept.filter((visitor) => visitor.startsWith("late-")).length).toBe(150);
    expect(kept).toContain("early-0");
    expect((await bench.client.zrange((await bench.wholeKeys()).journeysSeen, "0", "-1")).sort()).toEqual(kept.sort());
    const seen = (await journeys()).map(({ lastSeen }) => lastSeen);
    expect(seen).toEqual(seen.toSorted((a, b) => b - a));
  });

  test("one write carries those of the visitors seen last, whoever came first", async () => {
    counters.act("selfTest", "returning");
    for (let n = 1; n < WINDOW_LIMITS.journeys; n += 1) counters.act("sendMessage", `visitor-${n}`);
    counters.act("sendMessage", "returning");
    counters.act("sendMessage", "newcomer");
    await counters.flush();
    const kept = await bench.client.hkeys((await bench.wholeKeys()).journeys);
    expect(kept.length).toBe(WINDOW_LIMITS.journeys);
    expect(kept).toEqual(expect.arrayContaining(["returning", "newcomer"]));
    expect(kept).not.toContain("visitor-1");
  });

  test("the room is bounded in the process and in Redis, however many visitors do however much", async () => {
    const calls = jest.spyOn(pod.link, "run");
    for (let round = 0; round < 5; round += 1) {
      for (let n = 0; n < 20_000; n += 1) counters.act("submitFeedback", `visitor-${round}-${n % 2500}`);
      await counters.flush();
    }
    const { journeys: mostJourneys, actionsPerJourney } = WINDOW_LIMITS;
    const mostArgs = 8 + 2500 + mostJourneys * (4 + 2 * actionsPerJourney);
    for (const [, , args = []] of calls.mock.calls) expect(args.length).toBeLessThanOrEqual(mostArgs);
    expect(await bench.client.zcard((await bench.wholeKeys()).journeysSeen)).toBe(mostJourneys);
    const texts = await bench.client.hvals((await bench.wholeKeys()).journeys);
    expect(texts.length).toBe(mostJourneys);
    for (const text of texts) {
      const words = text.split(" ");
      expect(words.length).toBeLessThanOrEqual(4 + actionsPerJourney);
      for (const word of words.slice(4)) expect(word).toMatch(/^submitFeedback@\d{13}$/);
    }
  });

  test("what is read names no visitor", async () => {
    counters.act("sendMessage", "visitor-1");
    await counters.flush();
    expect(JSON.stringify(await journeys())).not.toContain("visitor-1");
  });
});

const SURFACE_IDS: readonly SurfaceId[] = ["trafficDaily", "selfTest", "sendMessage", "requestSession"];
const HOUR_MICROS = 3_600_000_000;

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
