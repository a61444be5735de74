import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS, REPORT_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import { RedisLink } from "relay-window/redis/redis-link.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { resetWindow } from "relay-window/window/reset.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { waitForAnswers } from "../../../test/support/use.ts";
import { openAnotherWindow, windowKeysIn } from "../../../test/support/window-view.ts";
import { type ReportSource, WindowReader } from "../src/window-reader.ts";

const AWAY_AND_BACK_MS = 100;
const logger = createLogger({ service: "test", level: "silent" });
const redis = new TestRedis();
waitForAnswers();
let link: RedisLink;
let window: ProcessWindow;
let reader: WindowReader;

beforeEach(async () => {
  await redis.start();
  link = new RedisLink({ url: redis.url, name: "test", logger });
  window = new ProcessWindow({ link, partitions: 1, deployId: "local", logger });
  await link.start();
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
  reader = new WindowReader({
    link,
    window,
    presenceStore,
    offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs,
    proofFreshnessMs: SESSION_LIMITS.proofFreshnessMs,
  });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await link.stop();
  await redis.stop();
});
afterAll(() => redis.stop());

/** Names of the scripts that Redis was asked to run. */
function scriptsRun(): () => string[] {
  const run = jest.spyOn(link, "run");
  return () => run.mock.calls.map(([name]) => name).sort();
}

const feedbackOf = async (total: number) =>
  await link.command("HSET", (await windowKeysIn(link.client)).whole.feedback, "total", total);

describe("what a report is computed from", () => {
  test("is at most as far behind as the limits say: write, kept read and two round trips together", () => {
    const { maxBehindMs, keptReadMs } = REPORT_LIMITS;
    expect(REDIS_LIMITS.counterFlushMs + keptReadMs + AWAY_AND_BACK_MS).toBeLessThanOrEqual(maxBehindMs);
  });

  test("is read for what was asked, and nothing else", async () => {
    const scripts = scriptsRun();
    const source = await reader.read("presence");
    expect(scripts()).toEqual(["count_presence", "snapshot", "snapshot_control"]);
    expect(source.presence).toEqual({ ok: 0, stale: 0, critical_stale: 0, offline: 0, missing: [] });
    expect("journeys" in source || "gatewayKeys" in source).toBe(false);
  });

  test("is read once for fifty reports at a time, whatever their parts", async () => {
    const scripts = scriptsRun();
    const reads = Array.from({ length: 50 }, (_, n) =>
      n % 2 === 0 ? reader.read("presence", "journeys") : reader.read("presence", "gatewayKeys"),
    );
    await Promise.all(reads);
    expect(scripts()).toEqual(["count_presence", "read_gateway_keys", "read_journeys", "snapshot", "snapshot_control"]);
  });

  test("shows a change as soon as the kept read is too old", async () => {
    const total = async () => (await reader.read()).feedback.get("total");
    const readAt = performance.now();
    const now = jest.spyOn(performance, "now").mockReturnValue(readAt);
    expect(await total()).toBeUndefined();
    await feedbackOf(1);
    now.mockReturnValue(readAt + REPORT_LIMITS.keptReadMs - 1);
    expect(await total()).toBeUndefined();
    now.mockReturnValue(readAt + REPORT_LIMITS.keptReadMs);
    expect(await total()).toBe(1);
  });

  test("has the time that it is now, kept or not", async () => {
    const first = await reader.read();
    const readAt = performance.now();
    await until("a while passes", () => performance.now() > readAt + 20);
    const scripts = scriptsRun();
    const later = await reader.read();
    if (scripts().length === 0) expect(later.now - first.now).toBeGreaterThanOrEqual(19);
    expect(Math.abs(later.now - Date.now())).toBeLessThan(1000);
  });

  test("is never of two windows: what was read before the new one is read again", async () => {
    const { now } = await reader.read();
    const readAt = performance.now();
    await until("a while passes", () => performance.now() > readAt + REPORT_LIMITS.keptReadMs / 2);
    // Kept for longer than the figures, which show the window.
    expect((await reader.read("presence")).presence.ok).toBe(0);
    const opened = await openAnotherWindow(link.client);
    for (const key of [
      (await windowKeysIn(link.client)).partition(0).presence,
      (await windowKeysIn(link.client)).partition(0).online,
    ]) {
      await link.command("ZADD", key, now, "agent://bob");
    }
    let source: ReportSource<"presence"> | undefined;
    await until("the new window is seen", async () => {
      source = await reader.read("presence");
      return source.windowId === opened;
    });
    expect(source?.presence.ok).toBe(1);
  });

  test("has no figures of the window before beside what is read anew in the next", async () => {
    await feedbackOf(1);
    expect((await reader.read()).feedback.get("total")).toBe(1);
    await resetWindow(link, { partitions: 1, deployId: "local", force: true });
    const source = await reader.read("presence");
    expect(source.windowId).toBe(window.current.id);
    expect(source.feedback.get("total")).toBeUndefined();
  });

  test("names a target with the same figures, read once for all who ask for it, apart for each session", async () => {
    const scripts = scriptsRun();
    const bob = { agent: "agent://bob", sessionId: null };
    const ofSession = { ...bob, sessionId: "ses_00abcdefghjkmnpqrstvwxyz01" };
    const reads = [bob, bob, ofSession].map((query) => reader.readWithTarget(query, "presence"));
    const [{ source, target }] = (await Promise.all(reads)) as [Awaited<(typeof reads)[number]>];
    expect(scripts()).toEqual(["count_presence", "read_target", "read_target", "snapshot", "snapshot_control"]);
    expect(source.presence.ok).toBe(0);
    expect(target).toMatchObject({ agent: "agent://bob", presence: { status: "not_seen" } });
  });

  test("is never a target of the window before", async () => {
    const bob = { agent: "agent://bob", sessionId: null };
    const { source } = await reader.readWithTarget(bob);
    const readAt = performance.now();
    await until("a while passes", () => performance.now() > readAt + REPORT_LIMITS.keptReadMs / 2);
    // Kept for longer than the figures, which show the window.
    expect((await reader.readWithTarget({ ...bob, agent: "agent://carol" })).target.presence.status).toBe("not_seen");
    const opened = await openAnotherWindow(link.client);
    const { presence, online, route } = (await windowKeysIn(link.client)).partition(0);
    for (const key of [presence, online]) await link.command("ZADD", key, source.now, "agent://carol");
    await link.command("HSET", route, "agent://carol", `pod connection 1 ${source.now} ${source.now}`);
    await until("the new window is seen", async () => {
      const read = await reader.readWithTarget({ ...bob, agent: "agent://carol" });
      if (read.source.windowId !== opened) return false;
      expect(read.target.presence.status).toBe("online");
      return true;
    });
  });

  test("is unavailable as soon as a window has more partitions than are read, of which it would be a share", async () => {
    await reader.read();
    await resetWindow(link, { partitions: 2, deployId: "local", force: false });
    const readAt = performance.now();
    await until("what was kept is too old", () => performance.now() > readAt + REPORT_LIMITS.keptReadMs);
    await expect(reader.read()).rejects.toMatchObject({ code: "unavailable" });
    await until("the link says why", () => link.downKind === "partitions");
  });

  test("is read anew in a window that something else adopted first", async () => {
    await feedbackOf(1);
    const { windowId } = await reader.read("journeys");
    await resetWindow(link, { partitions: 1, deployId: "local", force: true });
    expect((await window.adoptOpenWindow()).id).not.toBe(windowId);
    const source = await reader.read("journeys");
    expect(source.windowId).toBe(window.current.id);
    expect(source.feedback.get("total")).toBeUndefined();
  });

  test("is unavailable while Redis is, and read again as soon as it is back", async () => {
    await reader.read();
    jest.spyOn(link, "run").mockRejectedValue(new Error("down"));
    await until("what was kept is too old", () =>
      reader.read().then(
        () => false,
        () => true,
      ),
    );
    jest.restoreAllMocks();
    await expect(reader.read()).resolves.toMatchObject({ deployId: "local" });
  });
});

test("a report that uses a part which it does not name does not compile", async () => {
  const source = await reader.read("presence");
  const needsJourneys = ({ journeys }: ReportSource<"journeys">) => journeys;
  // @ts-expect-error: `journeys` was not read.
  expect(needsJourneys(source)).toBeUndefined();
});
