import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import { resetWindow } from "../src/reset.ts";
import { LAYOUT } from "../src/window-records.ts";
import { claimOf, messageOf } from "./envelopes.ts";
import { Bench } from "./kit.ts";

const bench = new Bench();
let link: RedisLink;

const reset = (options: { deployId?: string; force?: boolean; partitions?: number } = {}) =>
  resetWindow(link, { partitions: 1, deployId: "deploy-1", force: false, ...options });
const windowId = (p = 0) => bench.client.hget(partitionKeys.window(p), "id");
const keys = async () => (await bench.client.keys("*")).sort();

beforeEach(async () => {
  await bench.open();
  link = await bench.link();
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe("a reset", () => {
  test("opens a window where there is none, in all partitions", async () => {
    const outcome = await reset({ partitions: 4 });
    expect(outcome).toEqual({
      outcome: "opened",
      windowId: expect.stringMatching(/^win_/),
      deletedKeys: 0,
      leftPartitions: 0,
    });
    const id = await windowId();
    expect(outcome).toMatchObject({ windowId: id });
    expect([await windowId(1), await windowId(2), await windowId(3)]).toEqual([id, id, id]);
    expect(await bench.client.hgetall(controlKeys.window)).toMatchObject({ id, deploy_id: "deploy-1" });
  });

  test("keeps the window of the same deploy, and all that is in it", async () => {
    const pod = await bench.pod({ deployId: "deploy-1" });
    await pod.register("agent://bob");
    const before = await keys();
    expect(await reset()).toMatchObject({ outcome: "kept", windowId: pod.window.current.id, deletedKeys: 0 });
    expect(await keys()).toEqual(before);
  });

  test.each([{ deployId: "deploy-2" }, { force: true }])("with %j opens a new one", async (options) => {
    const pod = await bench.pod();
    const old = pod.window.current;
    const outcome = await reset(options);
    expect(outcome).toMatchObject({ outcome: "opened" });
    expect(await windowId()).not.toBe(old.id);
    expect((await pod.window.adoptOpenWindow()).salt).not.toBe(old.salt);
  });

  test("opens a window that started after the last one, also when the clock of Redis was set back", async () => {
    await bench.pod({ partitions: 2 });
    const later = Date.now() + 60_000;
    const windows = [controlKeys.window, partitionKeys.window(0), partitionKeys.window(1)];
    for (const key of windows) await bench.client.hset(key, "number", later);
    await reset({ force: true, partitions: 2 });
    for (const key of windows) expect(await bench.client.hget(key, "number")).toBe(`${later + 1}`);
  });

  test("with another number of partitions opens a new one, which only services with that number adopt", async () => {
    const { link: one } = await bench.pod({ partitions: 1 });
    const outcome = await reset({ partitions: 2 });
    expect(outcome).toMatchObject({ outcome: "opened" });
    const two = await bench.pod({ partitions: 2 });
    expect(outcome).toMatchObject({ windowId: two.window.current.id });
    one.reconnect(new Error("given up by the test"));
    await until("the other one noticed", () => one.downKind === "partitions");
    expect(await reset({ partitions: 2 })).toMatchObject({ outcome: "kept" });
  });

  test("of a window of an earlier layout opens a new one, which services of that layout leave alone", async () => {
    const { window } = await bench.pod({ deployId: "deploy-1" });
    const old = window.current.id;
    for (const key of [controlKeys.window, partitionKeys.window(0)]) await bench.client.hset(key, "layout", LAYOUT - 1);
    expect(await reset()).toMatchObject({ outcome: "opened" });
    const id = await windowId();
    expect(id).not.toBe(old);
    expect(await bench.client.hgetall(controlKeys.window)).toMatchObject({ id, layout: `${LAYOUT}` });
    expect(await bench.client.hgetall(partitionKeys.window(0))).toMatchObject({ id, layout: `${LAYOUT}` });
  });

  test("leaves a window of a later layout alone, whatever the deploy, unless it is told to replace it", async () => {
    await bench.pod({ deployId: "deploy-1" });
    for (const key of [controlKeys.window, partitionKeys.window(0)]) await bench.client.hset(key, "layout", LAYOUT + 1);
    const before = await bench.client.hgetall(controlKeys.window);
    expect(await reset()).toEqual({ outcome: "later_layout", layout: LAYOUT + 1 });
    expect(await bench.client.hgetall(controlKeys.window)).toEqual(before);
    expect(await reset({ force: true })).toMatchObject({ outcome: "opened" });
  });

  test("deletes everything of the relay's but what guards against repeats and floods, in all partitions", async () => {
    const pod = await bench.pod({ partitions: 4 });
    const agents = Array.from({ length: 12 }, (_, n) => `agent://a${n}`);
    for (const agent of agents) await pod.register(agent);
    for (const agent of agents) await pod.request("agent://alice", agent);
    const message = messageOf("agent://alice", "agent://a1");
    await pod.accept(message, { origin: "gateway", claim: claimOf("key", "body") });
    await bench.client.set(partitionKeys.limit(3, "send:key"), "1");

    const isGuard = (key: string) => /^relay:\{\w+\}:(?:seen:\d+$|limit:|idempotency:)/.test(key);
    const guards = (await keys()).filter(isGuard);
    expect(guards.length).toBeGreaterThanOrEqual(6);
    await reset({ deployId: "deploy-2", partitions: 4 });
    const windows = [controlKeys.window, controlKeys.salt, ...[0, 1, 2, 3].map((p) => partitionKeys.window(p))];
    expect(await keys()).toEqual([...guards, ...windows].sort());
    expect(await pod.accept(message)).toMatchObject({ outcome: "duplicate", delivery: "not_seen" });
  });

  test("deletes what only looks like the replay guard", async () => {
    await bench.client.set(`${partitionKeys.seen(0, 12)}x`, "1");
    await bench.client.set((await bench.keys()).session("seen:12"), "1");
    expect(await reset()).toMatchObject({ outcome: "opened", deletedKeys: 2 });
  });

  test("refuses a database with keys that are not the relay's, and touches nothing", async () => {
    const pod = await bench.pod();
    await pod.register("agent://bob");
    await bench.client.mset("another:key", "1", "relay-like", "2");
    const before = await keys();
    expect(await reset({ force: true })).toEqual({ outcome: "foreign", foreignKeys: 2 });
    expect(await keys()).toEqual(before);
    expect(await windowId()).toBe(pod.window.current.id);
  });

  test("that races others of its deploy opens one window", async () => {
    await bench.pod({ deployId: "deploy-0" });
    const links = [link, await bench.link(), await bench.link()];
    const options = { partitions: 1, deployId: "deploy-1", force: false };
    const outcomes = await Promise.all(links.map((each) => resetWindow(each, options)));
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["kept", "kept", "opened"]);
    const id = await windowId();
    expect(outcomes).toMatchObject(Array(3).fill({ windowId: id }));
  });

  test("finds all keys of a large database", async () => {
    const { session } = await bench.keys();
    const rows = Array.from({ length: 3000 }, (_, n) => [session(`s${n}`), "1"]).flat();
    await bench.client.mset(...rows);
    expect(await reset()).toMatchObject({ deletedKeys: 3000 });
    expect(await keys()).toEqual([controlKeys.window, controlKeys.salt, partitionKeys.window(0)].sort());
  });
});
