import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { WINDOW_LIMITS } from "protocol/contract/limits.ts";
import { openAnotherWindow } from "../../../test/support/another-window.ts";
import { until } from "../../../test/support/until.ts";
import { Counters } from "../src/counters.ts";
import { JourneysCopy } from "../src/journeys.ts";
import type { Journey } from "../src/records/journey.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { unavailable } from "../src/unavailable.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
let pod: Pod;
let counters: Counters;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod();
  counters = new Counters({ link: pod.link, window: pod.window });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

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
    counters.view("trafficDaily", "visitor-1");
    const atOther = performance.now() + 2;
    await until("time passes", () => performance.now() > atOther);
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

  test("is not gone twice when the reply to a write was lost", async () => {
    counters.act("sendMessage", "visitor-1");
    const run = pod.link.run.bind(pod.link);
    jest.spyOn(pod.link, "run").mockImplementationOnce(async (...call) => {
      await run(...call);
      throw unavailable();
    });
    await counters.flush();
    counters.act("requestSession", "visitor-1");
    await counters.flush();
    const [journey] = await journeys();
    expect(journey && namesOf(journey)).toEqual(["sendMessage", "requestSession"]);
    expect(journey?.count).toBe(2);
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

  test("begun in another window is dropped with it", async () => {
    counters.act("sendMessage", "visitor-1");
    await openAnotherWindow(bench.client);
    await counters.flush();
    await counters.flush();
    expect(await journeys()).toEqual([]);
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
