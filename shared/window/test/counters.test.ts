import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { openAnotherWindow } from "../../../test/support/another-window.ts";
import { until } from "../../../test/support/until.ts";
import { Counters } from "../src/counters.ts";
import { ProcessWindow } from "../src/process-window.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { unavailable } from "../src/unavailable.ts";
import { Bench, LOGGER, type Pod } from "./kit.ts";

const bench = new Bench();
let pod: Pod;
let counters: Counters;

const written = async (): Promise<Record<string, number>> =>
  Object.fromEntries((await readSnapshot(pod.link, pod.window)).traffic);

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod();
  counters = new Counters({ link: pod.link, window: pod.window });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await bench.clear();
});
afterAll(() => bench.redis.stop());

describe("counters", () => {
  test("are added up over processes, views by surface, visitors about once each", async () => {
    const other = new Counters({ link: pod.link, window: pod.window });
    counters.count("self_test_passed");
    counters.view("readSession", "visitor-1");
    counters.view("readSession", "visitor-2");
    other.view("readSession", "visitor-1");
    other.view("trafficDaily", "visitor-1");
    await Promise.all([counters.flush(), other.flush()]);
    const { traffic, surfaces, visitors } = await readSnapshot(pod.link, pod.window);
    expect(Object.fromEntries(traffic)).toEqual({ self_test_passed: 1, surface_views: 4 });
    expect(Object.fromEntries(surfaces)).toEqual({ readSession: 3, trafficDaily: 1 });
    expect(visitors).toBe(2);
  });

  test("cost Redis nothing while there is nothing to write", async () => {
    await bench.client.config("RESETSTAT");
    await counters.flush();
    expect((await bench.commandCalls()).evalsha).toBeUndefined();
  });

  test("are written soon by themselves, and what is left at stop", async () => {
    await counters.start();
    counters.count("onboarding_checks");
    await until("the count is written", async () => (await written()).onboarding_checks === 1);
    counters.count("onboarding_checks");
    await counters.stop();
    expect(await written()).toEqual({ onboarding_checks: 2 });
  });

  test("are exact when the reply to a write was lost: the same write again counts once", async () => {
    counters.count("onboarding_checks");
    loseOneReply();
    await counters.flush();
    counters.count("onboarding_checks");
    await counters.flush();
    await counters.flush();
    expect(await written()).toEqual({ onboarding_checks: 2 });
  });

  test("are all written at stop after a write without answer, the later ones too", async () => {
    counters.count("onboarding_checks");
    loseOneReply();
    await counters.flush();
    counters.count("onboarding_checks");
    await counters.stop();
    expect(await written()).toEqual({ onboarding_checks: 2 });
  });

  test("are kept over an outage and written after it", async () => {
    await bench.redis.pause();
    counters.count("onboarding_checks");
    await counters.flush();
    counters.count("onboarding_checks");
    await bench.redis.resume();
    await until("both are written", async () => {
      await counters.flush();
      return pod.link.up && (await written()).onboarding_checks === 2;
    });
    await counters.flush();
    expect(await written()).toEqual({ onboarding_checks: 2 });
  });

  test("are held for a minute while they cannot be written, then lost, and counted as that", async () => {
    const now = performance.now.bind(performance);
    let ahead = 0;
    jest.spyOn(performance, "now").mockImplementation(() => now() + ahead);
    const run = jest.spyOn(pod.link, "run").mockRejectedValue(unavailable());
    counters.view("readSession", "visitor-1");
    await counters.flush();
    counters.count("onboarding_checks");
    ahead = REDIS_LIMITS.countsHeldMs - 10_000;
    await counters.flush();
    expect(counters.lost).toBe(0);
    ahead = REDIS_LIMITS.countsHeldMs;
    await counters.flush();
    expect(counters.lost).toBe(2);

    counters.count("self_test_passed");
    run.mockRestore();
    await counters.flush();
    expect(await written()).toEqual({ self_test_passed: 1 });
    expect(counters.lost).toBe(2);
  });

  test("take no more room the longer they are held", async () => {
    jest.spyOn(pod.link, "run").mockRejectedValue(unavailable());
    counters.count("onboarding_checks");
    await counters.flush();
    for (let n = 0; n < 20_000; n += 1) counters.act("readSession", `visitor-${n}`);
    const run = jest.spyOn(pod.link, "run").mockResolvedValue("ok");
    await counters.flush();
    const args = run.mock.calls.map(([, , given = []]) => given.length);
    expect(Math.max(...args)).toBeLessThan(20_000);
  });

  test("gathered for the old window are dropped with it, those on their way included", async () => {
    counters.count("onboarding_checks");
    jest.spyOn(pod.link, "run").mockRejectedValueOnce(unavailable());
    await counters.flush();
    counters.count("onboarding_checks");
    const id = await openAnotherWindow(bench.client);
    await counters.flush();
    counters.count("self_test_passed");
    await counters.flush();
    expect(pod.window.current.id).toBe(id);
    expect(await written()).toEqual({ self_test_passed: 1 });
  });

  test("of a service that opens no window go into the first that it finds, by themselves", async () => {
    await bench.client.flushall();
    const link = await bench.link();
    const window = new ProcessWindow({ link, partitions: 1, deployId: null, logger: LOGGER });
    const reading = new Counters({ link, window });
    reading.count("onboarding_checks");
    await reading.flush();
    expect(await bench.client.dbsize()).toBe(0);
    await pod.window.adoptOpenWindow();
    await reading.flush();
    expect(window.current.id).toBe(pod.window.current.id);
    reading.count("self_test_passed");
    await reading.flush();
    expect(await written()).toEqual({ self_test_passed: 1 });
  });

  test("take no more visitors than one write carries", async () => {
    for (let n = 0; n < 20_000; n += 1) counters.view("readSession", `visitor-${n}`);
    await counters.flush();
    const { surfaces, visitors } = await readSnapshot(pod.link, pod.window);
    expect(surfaces.get("readSession")).toBe(20_000);
    expect(visitors).toBeGreaterThan(4800);
    expect(visitors).toBeLessThan(5200);
  });
});

/** Redis carries the next script out, and its reply never comes. */
function loseOneReply(): void {
  const run = pod.link.run.bind(pod.link);
  jest.spyOn(pod.link, "run").mockImplementationOnce(async (...call) => {
    await run(...call);
    throw unavailable();
  });
}
