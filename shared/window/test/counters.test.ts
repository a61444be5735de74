import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import {
  BLOCKER_CATEGORIES,
  CATEGORIES,
  categoryOf,
  SENTIMENTS,
  sentimentOf,
} from "relay-protocol/contract/requests.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId, surfaceLabelOf } from "relay-protocol/contract/surfaces.ts";
import { anonymousId } from "relay-runtime/http/client-address.ts";
import { until } from "../../../test/support/until.ts";
import { openAnotherWindow } from "../../../test/support/window-view.ts";
import { addFeedback, Counters } from "../src/counters/counters.ts";
import { JourneysCopy } from "../src/counters/journeys.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { unavailable } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { LOGGER, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let pod: Pod;

beforeEach(async () => {
  pod = await bench.pod();
});

describe("counters", () => {
  let counters: Counters;
  const journeys = () => new JourneysCopy(pod.link, pod.window).read();
  const written = async (): Promise<Record<string, number>> =>
    Object.fromEntries((await readSnapshot(pod.link, pod.window)).traffic);

  beforeEach(() => {
    counters = new Counters({ link: pod.link, window: pod.window });
  });

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

  test("are exact when the reply to a write was lost: the same write again counts once, and adds to a journey once", async () => {
    counters.count("onboarding_checks");
    counters.act("sendMessage", "visitor-1");
    loseOneReply();
    await counters.flush();
    counters.count("onboarding_checks");
    counters.act("requestSession", "visitor-1");
    await counters.flush();
    await counters.flush();
    expect(await written()).toEqual({ onboarding_checks: 2 });
    expect(await journeys()).toMatchObject([
      { count: 2, actions: [{ name: "sendMessage" }, { name: "requestSession" }] },
    ]);
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

  test("gathered for the old window are dropped with it, those on their way and journeys included", async () => {
    counters.count("onboarding_checks");
    counters.act("sendMessage", "visitor-1");
    jest.spyOn(pod.link, "run").mockRejectedValueOnce(unavailable());
    await counters.flush();
    counters.count("onboarding_checks");
    const id = await openAnotherWindow(bench.client);
    await counters.flush();
    counters.count("self_test_passed");
    await counters.flush();
    expect(pod.window.current.id).toBe(id);
    expect(await written()).toEqual({ self_test_passed: 1 });
    expect(await journeys()).toEqual([]);
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

  /** Redis carries the next script out, and its reply never comes. */
  function loseOneReply(): void {
    const run = pod.link.run.bind(pod.link);
    jest.spyOn(pod.link, "run").mockImplementationOnce(async (...call) => {
      await run(...call);
      throw unavailable();
    });
  }
});

describe("an anonymous id", () => {
  const TRAITS = ["203.0.113.7", "Agent/1.0 (test)"];

  test("shows none of the traits it was made of, in any spelling", () => {
    const id = anonymousId("salt", "visitor", ...TRAITS);
    expect(id).toMatch(/^[A-Za-z0-9_-]{22}$/);
    const spellings = [
      id,
      Buffer.from(id, "base64url").toString("latin1"),
      Buffer.from(id, "base64url").toString("hex"),
    ];
    for (const trait of TRAITS) {
      for (const spelling of spellings) expect(spelling).not.toContain(trait);
    }
  });

  test("is the same for the same visitor, and another for another salt, purpose or trait", () => {
    const id = anonymousId("salt", "visitor", ...TRAITS);
    expect(anonymousId("salt", "visitor", ...TRAITS)).toBe(id);
    const others = [
      anonymousId("salt-2", "visitor", ...TRAITS),
      anonymousId("salt", "address", ...TRAITS),
      anonymousId("salt", "visitor", "203.0.113.8", TRAITS[1] as string),
      anonymousId("salt", "visitor", TRAITS[0] as string),
    ];
    expect(new Set([id, ...others]).size).toBe(5);
  });
});

describe("a feedback label", () => {
  test("keeps every sentiment and category, those included that stand between connector and session", () => {
    expect([...SENTIMENTS].map(sentimentOf)).toEqual([...SENTIMENTS]);
    expect([...CATEGORIES].map(categoryOf)).toEqual([...CATEGORIES]);
    expect([...CATEGORIES]).toEqual(expect.arrayContaining([...BLOCKER_CATEGORIES]));
  });

  test("is found whatever its case, blanks and hyphens", () => {
    expect(categoryOf("  Stale-Presence ")).toBe("stale_presence");
    expect(sentimentOf("HELPFUL")).toBe("helpful");
    expect(surfaceLabelOf("Web Socket")).toBe("other");
    expect(surfaceLabelOf(" WebSocket ")).toBe("websocket");
  });

  test.each([
    [
      "smoke_check",
      ["smoke", "Smoke Test", "smoke-check", "smoketest", "smoke_tests", "post-deploy smoke", "smoke run"],
    ],
    [
      "deploy_check",
      ["deploy", "Deploy Test", "deployment-check", "deploycheck", "post_deploy", "postdeploy check", "deploy_probe"],
    ],
  ])("of a check is %s in every usual spelling", (category, spellings) => {
    for (const spelling of spellings) expect([spelling, categoryOf(spelling)]).toEqual([spelling, category]);
  });

  test.each(["smoked", "deployed_docs_wrong", "no smoke", "deploy the docs"])("is no check for %j", (text) => {
    expect(categoryOf(text)).toBe("other");
  });

  test("of a surface is the operation id, by id, or by path or alias that it has", () => {
    for (const [id, { path, aliases }] of Object.entries(SURFACES)) {
      expect(surfaceLabelOf(id)).toBe(id);
      for (const name of [path, ...aliases]) {
        const labelled: Surface = SURFACES[surfaceLabelOf(name) as SurfaceId];
        expect([labelled.path, ...labelled.aliases]).toContain(name);
      }
    }
  });

  test.each([undefined, "", "constructor", "__proto__", "rk_0123", "a".repeat(100_000), "\u0000"])(
    "is other for %j",
    (text) => {
      expect([sentimentOf(text), categoryOf(text), surfaceLabelOf(text)]).toEqual(["other", "other", "other"]);
    },
  );
});

describe("in Redis", () => {
  const feedback = async () => bench.client.hgetall((await bench.wholeKeys()).feedback);

  test("feedback is counted by its labels, and of its text only that there was one", async () => {
    await addFeedback(pod.link, pod.window, {
      surface: "/api/onboarding/check-online",
      sentiment: "blocked",
      category: "stale_presence",
      message: "the raw text",
    });
    await addFeedback(pod.link, pod.window, { message: "" });
    expect(await feedback()).toEqual({
      total: "2",
      "surface:checkOnline": "1",
      "surface:other": "1",
      "sentiment:blocked": "1",
      "sentiment:other": "1",
      "category:stale_presence": "1",
      "category:other": "1",
      message_provided: "1",
    });
  });

  test("feedback takes bounded room, whatever is posted", async () => {
    const texts = Array.from({ length: 200 }, (_, n) => `made up ${n}`);
    for (const text of texts) {
      await addFeedback(pod.link, pod.window, { surface: text, sentiment: text, category: text, message: text });
    }
    const all = ["total", "surface:other", "sentiment:other", "category:other", "message_provided"];
    expect(await feedback()).toEqual(Object.fromEntries(all.map((name) => [name, "200"])));
  });

  test("feedback goes into the window that is open", async () => {
    const id = await openAnotherWindow(bench.client);
    await addFeedback(pod.link, pod.window, {});
    expect(pod.window.current.id).toBe(id);
    expect((await feedback()).total).toBe("1");
  });
});
