import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { seriesIn } from "../../../test/support/http.ts";
import { until } from "../../../test/support/until.ts";
import { openAnotherWindow } from "../../../test/support/window-view.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import { readCredentials } from "../src/public-keys/credential-records.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import { readSession, readTarget } from "../src/sessions/look-ups.ts";
import { observeWindow } from "../src/window/observe.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { resetWindow } from "../src/window/reset.ts";
import { LAYOUT } from "../src/window/window-records.ts";
import { ALICE, BOB, envelopeOf, messageOf } from "./envelopes.ts";
import { LOGGER, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();

const unavailable = expect.objectContaining({ code: "unavailable" });

/** A window over a link that is up already. */
const windowOver = (link: RedisLink, deployId: string | null = "deploy-1", partitions = 1) =>
  new ProcessWindow({ link, partitions, deployId, logger: LOGGER });

const idsIn = (partitions: number) =>
  Promise.all(Array.from({ length: partitions }, (_, p) => bench.client.hget(partitionKeys.window(p), "id")));

const openId = () => bench.client.hget(controlKeys.window, "id");

/** Resets the window so many times between what an adoption asks of the control slot and what it asks of the partitions. */
async function resetAfterControl(link: RedisLink, partitions: number, times: number): Promise<void> {
  const other = await bench.link();
  const run = link.run.bind(link);
  let resets = 0;
  jest.spyOn(link, "run").mockImplementation(async (script, keys, args) => {
    const reply = await run(script, keys, args);
    if (script === "read_window" && resets < times) {
      resets += 1;
      await resetWindow(other, { partitions, deployId: "deploy-1", force: true });
    }
    return reply;
  });
}

describe("a process window", () => {
  test("opens where there is none, in all partitions, with the time of Redis and a random id and salt", async () => {
    const before = Date.now();
    const { id, startedAt, deployId, salt } = await windowOver(await bench.link(), "deploy-1", 4).adoptOpenWindow();
    expect(id).toMatch(/^win_[0-9a-f]{24}$/);
    expect(deployId).toBe("deploy-1");
    expect(salt).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(startedAt).toBeGreaterThanOrEqual(before);
    expect(startedAt).toBeLessThanOrEqual(Date.now());
    expect([await openId(), ...(await idsIn(4))]).toEqual([id, id, id, id, id]);
  });

  test("is the same for all that come, whatever their deploy: scaling and restarting reset nothing", async () => {
    const links = await Promise.all([bench.link(), bench.link(), bench.link()]);
    const found = await Promise.all(links.map((link, n) => windowOver(link, `deploy-${n}`).adoptOpenWindow()));
    expect(new Set(found.map((window) => JSON.stringify(window))).size).toBe(1);
  });

  test("is opened as soon as a link is up", async () => {
    const { window } = await bench.pod();
    expect(window.current.id).toBe(await openId());
  });

  test("is gone on with while nobody can be asked whether another one is open", async () => {
    const { link, window } = await bench.pod();
    const { current } = window;
    jest.spyOn(link, "run").mockRejectedValue(new Error("no answer"));
    const adopting = window.adoptOpenWindow();
    const known = window.known();
    await expect(adopting).rejects.toThrow("no answer");
    expect(await known).toBe(current);
  });

  test("is only read by a service that opens none", async () => {
    const link = await bench.link();
    const reader = windowOver(link, null);
    await expect(reader.adoptOpenWindow()).rejects.toEqual(unavailable);
    expect(() => reader.current).toThrow(unavailable);
    expect(await bench.client.dbsize()).toBe(0);
    const opened = await windowOver(link).adoptOpenWindow();
    expect(await reader.known()).toMatchObject({ id: opened.id, salt: opened.salt, startedAt: opened.startedAt });
    expect(reader.current.id).toBe(opened.id);
  });

  test("is not adopted by a service with another number of partitions, which changes none of it and is refused", async () => {
    const { link: opener } = await bench.pod({ partitions: 2 });
    const ids = await idsIn(4);
    const link = await bench.link();
    const writer = windowOver(link, "deploy-1", 4);
    await expect(writer.adoptOpenWindow()).rejects.toEqual(unavailable);
    await expect(writer.inWindow(async () => "written")).rejects.toEqual(unavailable);
    expect(link.downKind).toBe("partitions");
    expect(await idsIn(4)).toEqual(ids);
    const reader = await bench.link();
    await expect(windowOver(reader, null, 1).adoptOpenWindow()).rejects.toEqual(unavailable);
    expect(reader.downKind).toBe("partitions");
    expect(opener.up).toBe(true);
  });

  test.each([
    ["the control slot says", [controlKeys.window]],
    ["the partitions alone know", [partitionKeys.window(0), partitionKeys.window(1)]],
  ])("of another layout, as %s, is adopted by nobody, who changes none of it", async (_who, records) => {
    const { window } = await bench.pod({ partitions: 2 });
    const { id } = window.current;
    for (const key of records) await bench.client.hset(key, "layout", LAYOUT + 1);
    if (!records.includes(controlKeys.window)) await bench.client.del(controlKeys.window);
    const link = await bench.link();
    await expect(windowOver(link, "deploy-1", 2).adoptOpenWindow()).rejects.toEqual(unavailable);
    expect(link.downKind).toBe("layout");
    await expect(windowOver(await bench.link(), null, 2).adoptOpenWindow()).rejects.toEqual(unavailable);
    expect(await idsIn(2)).toEqual([id, id]);
  });

  test("of a version that counted no layouts has the first one", async () => {
    const { window } = await bench.pod({ partitions: 2 });
    const { id } = window.current;
    for (const key of [controlKeys.window, partitionKeys.window(0), partitionKeys.window(1)]) {
      await bench.client.hdel(key, "layout");
    }
    expect(await windowOver(await bench.link(), "deploy-1", 2).adoptOpenWindow()).toMatchObject({ id });
  });

  test("that an older version opened is followed by another one", async () => {
    const older = { id: "win_older", started_at: 1, deploy_id: "deploy-0", partitions: 2 };
    await bench.client.hset(controlKeys.window, older);
    const { id, deployId } = await windowOver(await bench.link(), "deploy-1", 2).adoptOpenWindow();
    expect(id).not.toBe("win_older");
    expect(deployId).toBe("deploy-0");
    expect([await openId(), ...(await idsIn(2))]).toEqual([id, id, id]);
  });

  test("is not brought back by an adoption that a reset overtakes", async () => {
    const { window } = await bench.pod({ partitions: 4 });
    const old = window.current.id;
    const link = await bench.link();
    await resetAfterControl(link, 4, 1);
    const { id } = await windowOver(link, "deploy-1", 4).adoptOpenWindow();
    expect(id).not.toBe(old);
    expect(await idsIn(4)).toEqual([id, id, id, id]);
  });

  test("is unavailable rather than adopted in part while it is reset again and again", async () => {
    const link = await bench.link();
    await resetAfterControl(link, 2, Number.POSITIVE_INFINITY);
    await expect(windowOver(link, "deploy-1", 2).adoptOpenWindow()).rejects.toEqual(unavailable);
    const id = await openId();
    expect(await idsIn(2)).toEqual([id, id]);
  });
});

describe("a service in another window than Redis", () => {
  test.each([
    [
      "a message",
      messageOf(ALICE, BOB),
      { published_envelopes: 1, published_to_offline_target: 1, websocket_accepted: 1 },
    ],
    ["a register", envelopeOf("agent.register", ALICE), { websocket_accepted: 1 }],
  ])("does nothing in the old one, adopts the new one and goes on there with %s", async (_, envelope, counted) => {
    const pod = await bench.pod();
    const old = pod.window.current;
    const id = await openAnotherWindow(bench.client);
    await bench.client.config("RESETSTAT");
    expect(await pod.accept(envelope)).toMatchObject({ outcome: "accepted" });
    expect(pod.window.current.id).toBe(id);
    expect(old.id).not.toBe(id);
    expect(await bench.counters()).toEqual(counted);
    expect((await bench.commandCalls()).sadd).toBe(1);
  });

  test("tells all that listen at once, before anything is written to the new window", async () => {
    const pod = await bench.pod();
    const written: string[] = [];
    const order: string[] = [];
    pod.window.onChange(() => new Promise((resolve) => setImmediate(resolve)));
    pod.window.onChange(() => void order.push("told"));
    const opened = await openAnotherWindow(bench.client);
    await pod.window.inWindow(async ({ id }) => {
      written.push(id);
      if (id !== opened) return null;
      order.push("written");
      return id;
    });
    expect(written).toHaveLength(2);
    expect(order).toEqual(["told", "written"]);
  });

  test("does not hear of a window that it is in already", async () => {
    const pod = await bench.pod();
    const told: string[] = [];
    pod.window.onChange(() => void told.push(pod.window.current.id));
    await Promise.all([pod.window.adoptOpenWindow(), pod.window.adoptOpenWindow()]);
    expect(told).toEqual([]);
  });

  test("says unavailable rather than chase windows for ever", async () => {
    const pod = await bench.pod();
    await expect(pod.window.inWindow(async () => null)).rejects.toEqual(unavailable);
  });

  test("adopts the window of a Redis that came back empty, without restart", async () => {
    const pod = await bench.pod({ partitions: 4 });
    const before = pod.window.current;
    await pod.register(BOB);
    await bench.redis.restart();
    await until("the link is up again in a new window", () => pod.link.up && pod.window.current.id !== before.id);
    expect(pod.window.current.salt).not.toBe(before.salt);
    expect(await pod.heartbeat(BOB)).toMatchObject({ outcome: "accepted", status: "online" });
    const { id } = pod.window.current;
    expect(await idsIn(4)).toEqual([id, id, id, id]);
  });

  test("shows a Redis that came back empty as a later start by the same deploy, which a deploy never is", async () => {
    const { link, window } = await bench.pod();
    const metrics = new ServiceMetrics("gateway");
    observeWindow(metrics, link, window);
    const startOf = async (deploy: string) =>
      seriesIn(await metrics.registry.metrics()).value("relay_window_start_time_seconds", { deploy });
    const first = window.current.startedAt;
    expect(await startOf("deploy-1")).toBe(first / 1000);
    await bench.client.flushall();
    await window.adoptOpenWindow();
    expect(await startOf("deploy-1")).toBeGreaterThan(first / 1000);
    await resetWindow(link, { partitions: 1, deployId: "deploy-2", force: false });
    await window.adoptOpenWindow();
    expect(await startOf("deploy-1")).toBeUndefined();
    expect(await startOf("deploy-2")).toBe(window.current.startedAt / 1000);
  });

  test("shows no start before it is known", async () => {
    const metrics = new ServiceMetrics("gateway");
    const link = await bench.link();
    observeWindow(metrics, link, windowOver(link));
    expect(seriesIn(await metrics.registry.metrics()).value("relay_window_start_time_seconds")).toBeUndefined();
  });

  test("gives up a salt with the window", async () => {
    const pod = await bench.pod();
    const { salt } = pod.window.current;
    await bench.client.flushall();
    expect((await pod.window.adoptOpenWindow()).salt).not.toBe(salt);
    expect(await bench.client.get(controlKeys.salt)).toBe(pod.window.current.salt);
  });
});

describe("whoever listens for another window:", () => {
  let link: RedisLink;
  let window: ProcessWindow;
  let heard: () => Promise<void>;

  beforeEach(async () => {
    heard = () => Promise.resolve();
    ({ link, window } = await bench.pod());
    window.onChange(() => heard());
  });

  test("nothing is written to a new window while a listener has not done its work there", async () => {
    await openAnotherWindow(link.client);
    const { promise: told, resolve: tell } = Promise.withResolvers<void>();
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    heard = () => {
      tell();
      return done;
    };
    const adopting = window.adoptOpenWindow();
    await told;

    const written: string[] = [];
    const write = window.inWindow(async ({ id }) => written.push(id));
    await link.command("PING");
    expect(written).toEqual([]);
    finish();
    await write;
    expect(written).toEqual([(await adopting).id]);
  });

  test("a window whose listener failed is not adopted, and is told of again", async () => {
    const { id } = window.current;
    await openAnotherWindow(link.client);
    heard = () => Promise.reject(new Error("no"));
    await expect(window.adoptOpenWindow()).rejects.toThrow("no");
    expect(window.current.id).toBe(id);

    const times: number[] = [];
    heard = async () => void times.push(1);
    await window.adoptOpenWindow();
    expect(window.current.id).not.toBe(id);
    expect(times).toEqual([1]);
  });
});

describe("reads of a window that is replaced:", () => {
  const { offlineAfterMs } = PRESENCE_LIMITS;
  let writer: Pod;

  /** Knows the window that is replaced in each test, and writes nothing. */
  let reader: Pod;

  beforeEach(async () => {
    writer = await bench.pod();
    reader = await bench.pod({ pod: "pod-b" });
    await bench.ear("pod-a");
  });

  const REPLACEMENTS: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["was reset", () => resetWindow(writer.link, { partitions: 1, deployId: "deploy-1", force: true })],
    ["was lost", () => bench.client.flushall()],
  ];

  test.each(REPLACEMENTS)(
    "who reads of a window that %s meanwhile is told of the one that is open",
    async (_, replace) => {
      await writer.register(BOB);
      await replace();
      await writer.register(ALICE);
      const { sessionId } = await writer.request(ALICE, ALICE);
      const { link, window } = reader;
      const presence = new PresenceStore({ link, window, offlineAfterMs });
      const { proofFreshnessMs } = SESSION_LIMITS;
      expect(await presence.read(ALICE)).toMatchObject({ status: "online" });

      await replace();
      await writer.register(BOB);
      const target = await readTarget(
        link,
        window,
        { agent: BOB, sessionId: null },
        { offlineAfterMs, proofFreshnessMs },
      );
      expect(target.presence).toMatchObject({ status: "online" });
      await replace();
      expect(await readSession(link, window, sessionId as string)).toBeNull();
      expect(await readCredentials(link, window, BOB)).toEqual([]);
      expect(await presence.count()).toEqual({ ok: 0, stale: 0, critical_stale: 0, offline: 0, missing: [] });
    },
  );

  test("who reads of the window that it knows asks once", async () => {
    await writer.register(BOB);
    await bench.client.config("RESETSTAT");
    const { link, window } = reader;
    expect(await new PresenceStore({ link, window, offlineAfterMs }).read(BOB)).toMatchObject({ status: "online" });
    expect((await bench.commandCalls()).evalsha).toBe(1);
  });
});
