import { beforeEach, describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import type { ScriptName } from "../src/redis/scripts.ts";
import { findOrOpenWindow, findWindow } from "../src/window/process-window.ts";
import { resetWindow } from "../src/window/reset.ts";
import {
  beginWindow,
  type ControlRecord,
  endOpening,
  LAYOUT,
  raisePartitions,
  readControl,
} from "../src/window/window-records.ts";
import { ALICE, BOB, claimOf, envelopeOf, messageOf } from "./envelopes.ts";
import { type Pod, redisBench } from "./kit.ts";

const bench = redisBench();

describe("a reset", () => {
  let link: RedisLink;
  const reset = (options: { deployId?: string; force?: boolean; partitions?: number } = {}) =>
    resetWindow(link, { partitions: 1, deployId: "deploy-1", force: false, ...options });
  const windowId = (p = 0) => bench.client.hget(partitionKeys.window(p), "id");
  const keys = async () => (await bench.client.keys("*")).sort();

  beforeEach(async () => {
    link = await bench.link();
  });

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
    await pod.register(BOB);
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
    for (const agent of agents) await pod.request(ALICE, agent);
    const message = messageOf(ALICE, "agent://a1");
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
    await pod.register(BOB);
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

describe("after a loss:", () => {
  const PARTITIONS = 4;
  const LOST = 2;
  const AGENTS = Array.from({ length: 12 }, (_, n) => `agent://a${n}`);
  let pod: Pod;
  let other: Pod;

  beforeEach(async () => {
    pod = await bench.pod({ partitions: PARTITIONS });
    other = await bench.pod({ partitions: PARTITIONS, pod: "pod-b", deployId: "deploy-2" });
    for (const agent of AGENTS) await pod.register(agent);
  });

  const generations = () =>
    Promise.all(Array.from({ length: PARTITIONS }, (_, p) => bench.client.hget(partitionKeys.window(p), "generation")));
  const numberOf = async (key: string) => Number(await bench.client.hget(key, "number"));

  /** Agents that some connection has. */
  const present = async () => {
    const routes = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => bench.routes(p)));
    return routes.flatMap((ofPartition) => Object.keys(ofPartition)).sort();
  };
  const agentsElsewhere = AGENTS.filter((agent) => partitionOf(agent, PARTITIONS) !== LOST).sort();

  /** All keys of one slot are gone, as after a primary was replaced that nobody had copied. */
  async function lose(tag: string): Promise<void> {
    const keys = await bench.client.keys(`relay:{${tag}}:*`);
    expect(keys.length).toBeGreaterThan(1);
    await bench.client.del(...keys);
  }

  /** The control slot is as it is now, as after a replica took over that had received nothing since. */
  async function controlAsItIs(): Promise<() => Promise<void>> {
    const [record, salt] = [await bench.client.hgetall(controlKeys.window), await bench.client.get(controlKeys.salt)];
    return async () => {
      await bench.client.del(controlKeys.window);
      await bench.client.hset(controlKeys.window, record);
      await bench.client.set(controlKeys.salt, salt as string);
    };
  }

  const losePartition = () => lose(/\{(\w+)\}/.exec(partitionKeys.window(LOST))?.[1] as string);

  describe("a partition that was lost", () => {
    test("opens one next window, of all that see it, in which it is empty and the others keep their state", async () => {
      const before = { window: pod.window.current, generations: await generations() };
      await losePartition();
      const found = await Promise.all([pod.window.adoptOpenWindow(), other.window.adoptOpenWindow()]);
      expect(new Set(found.map(({ id }) => id)).size).toBe(1);
      expect(found[0]?.id).not.toBe(before.window.id);
      expect(found[0]).toMatchObject({ deployId: "deploy-1", salt: before.window.salt });
      expect(found[0]?.startedAt).toBeGreaterThan(before.window.startedAt);
      const kept = (all: readonly (string | null)[]) => all.toSpliced(LOST, 1);
      expect(kept(await generations())).toEqual(kept(before.generations));
      expect(Number((await generations())[LOST])).toBeGreaterThan(Number(before.generations[LOST]));
      expect(await present()).toEqual(agentsElsewhere);
      // It has settled: nobody opens another one.
      expect((await pod.window.adoptOpenWindow()).id).toBe(found[0]?.id);
    });

    test("is noticed by who writes nothing", async () => {
      const { id } = pod.window.current;
      await pod.window.adoptIfChanged();
      expect(pod.window.current.id).toBe(id);
      await losePartition();
      await pod.window.adoptIfChanged();
      expect(pod.window.current.id).not.toBe(id);
    });

    test("is noticed by who writes there, and counts begin anew in every partition", async () => {
      await losePartition();
      const [agent] = AGENTS.filter((each) => partitionOf(each, PARTITIONS) === LOST) as [string];
      expect(await pod.accept(messageOf(ALICE, agent))).toMatchObject({ outcome: "accepted" });
      const counts = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => bench.counters(p)));
      expect(counts.map(({ published_envelopes: n }) => Number(n ?? 0))).toEqual([0, 0, 1, 0]);
    });

    test("is not written to by who has not noticed: what is late does nothing under the old names", async () => {
      const old = pod.window.current.keys.partition(LOST);
      await losePartition();
      await other.window.adoptOpenWindow();
      for (const agent of AGENTS) await pod.accept(envelopeOf("agent.heartbeat", agent));
      expect(await bench.client.exists(old.presence, old.route, old.online, old.counters)).toBe(0);
    });
  });

  describe("a control slot that was lost", () => {
    test.each([
      ["whole", () => lose("0")],
      ["but for its salt", () => bench.client.del(controlKeys.window)],
      ["by its salt alone", () => bench.client.del(controlKeys.salt)],
    ])("%s opens a later window, in which every partition keeps its state", async (_, befall) => {
      const before = { id: pod.window.current.id, startedAt: pod.window.current.startedAt, all: await generations() };
      await bench.client.set(controlKeys.gatewayKeys, "any");
      await befall();
      const found = await Promise.all([pod.window.adoptOpenWindow(), other.window.adoptOpenWindow()]);
      expect(new Set(found.map(({ id }) => id)).size).toBe(1);
      expect(found[0]?.id).not.toBe(before.id);
      expect(found[0]?.startedAt).toBeGreaterThan(before.startedAt);
      expect(await generations()).toEqual(before.all);
      expect(await present()).toEqual(AGENTS.toSorted());
    });

    test("is followed by a window later than that of every partition, also when the clock was set back", async () => {
      const later = Date.now() + 3_600_000;
      await bench.client.hset(partitionKeys.window(1), "number", later);
      await bench.client.del(controlKeys.window);
      await pod.window.adoptOpenWindow();
      expect(await numberOf(controlKeys.window)).toBe(later + 1);
      expect(await numberOf(partitionKeys.window(1))).toBe(later + 1);
    });

    test("and came back older than the partitions is followed by a later one, too", async () => {
      const back = await controlAsItIs();
      await losePartition();
      const { startedAt, salt } = await pod.window.adoptOpenWindow();
      await back();
      const next = await pod.window.adoptOpenWindow();
      expect(next.startedAt).toBeGreaterThan(startedAt);
      expect(next.salt).toBe(salt);
    });
  });

  describe("a control slot that came back as it was before a reset", () => {
    const reset = { partitions: PARTITIONS, deployId: "deploy-3", force: false };

    test("undoes nothing: what the partitions have since is kept, and nothing of before", async () => {
      const before = { window: pod.window.current, all: await generations() };
      const back = await controlAsItIs();
      const unreached = await bench.client.hgetall(partitionKeys.window(LOST));
      await resetWindow(other.link, reset);
      const { startedAt, salt } = await pod.window.adoptOpenWindow();
      for (const agent of agentsElsewhere) await pod.register(agent);
      const since = await generations();
      await back();
      await bench.client.hset(partitionKeys.window(LOST), unreached);

      const found = await Promise.all([pod.window.adoptOpenWindow(), other.window.adoptOpenWindow()]);
      expect(new Set(found.map(({ id }) => id)).size).toBe(1);
      const [next] = found;
      expect(next?.deployId).toBe("deploy-3");
      expect(next?.startedAt).toBeGreaterThan(startedAt);
      expect([before.window.salt, salt]).not.toContain(next?.salt);
      expect(await numberOf(controlKeys.window)).toBe(next?.startedAt);
      expect(await bench.client.hget(controlKeys.window, "since")).toBe(`${startedAt}`);
      expect(await generations()).toEqual(since.with(LOST, `${next?.startedAt}`));
      expect(await present()).toEqual(agentsElsewhere);
      expect(await resetWindow(pod.link, reset)).toMatchObject({ outcome: "kept", windowId: next?.id });
    });

    test("does not say how many partitions there are", async () => {
      const back = await controlAsItIs();
      const options = { ...reset, partitions: PARTITIONS * 2 };
      await resetWindow(other.link, options);
      await back();
      await expect(findWindow(other.link, options.partitions)).rejects.toMatchObject({ code: "unavailable" });
      const found = await findOrOpenWindow(other.link, options);
      expect(found).toMatchObject({ deployId: "deploy-3", partitions: options.partitions });
      await expect(findOrOpenWindow(other.link, reset)).rejects.toMatchObject({ kind: "partitions" });
    });

    test("says of a window that was being opened what the partitions have overtaken", async () => {
      await beginWindow(pod.link, await readControl(pod.link), [], { ...reset, deployId: "deploy-2", since: 0 });
      const back = await controlAsItIs();
      await resetWindow(other.link, reset);
      await back();
      expect(await pod.window.adoptOpenWindow()).toMatchObject({ deployId: "deploy-3" });
      expect(await present()).toEqual([]);
    });
  });

  describe("of several that would open the next window", () => {
    const next = { partitions: PARTITIONS, deployId: "deploy-3", since: 0 };

    test("one begins it", async () => {
      const last = await readControl(pod.link);
      const begun = await Promise.all([pod, other].map(({ link }) => beginWindow(link, last, [], next)));
      expect(begun.toSorted()).toEqual([false, true]);
    });

    test("who comes too late, to a window that was followed by another one, takes no partition back", async () => {
      await beginWindow(pod.link, await readControl(pod.link), [], next);
      const overtaken = (await readControl(pod.link)) as ControlRecord;
      await resetWindow(other.link, { ...next, force: true });
      const { id } = await pod.window.adoptOpenWindow();
      expect(await raisePartitions(pod.link, overtaken)).toMatchObject(Array(PARTITIONS).fill({ id }));
      expect(await endOpening(pod.link, overtaken)).toBe(false);
      expect((await pod.window.adoptOpenWindow()).id).toBe(id);
    });
  });

  test("A Redis that was emptied is one window of all that find it so", async () => {
    const { id } = pod.window.current;
    await bench.client.flushall();
    const found = await Promise.all([
      pod.window.adoptOpenWindow(),
      other.window.adoptOpenWindow(),
      pod.window.adoptOpenWindow(),
    ]);
    expect(new Set(found.map((each) => each.id)).size).toBe(1);
    expect(found[0]?.id).not.toBe(id);
  });

  describe("a reset whose process dies", () => {
    /** Ends before the nth call of a script, or of a command, as a process that was killed would. */
    const dieBefore = (link: RedisLink, name: ScriptName | "UNLINK", nth: number): void => {
      let calls = 0;
      const [run, command] = [link.run.bind(link), link.command.bind(link)];
      const dieInTime = (called: string) => {
        if (called === name) calls += 1;
        if (calls >= nth) throw new Error("killed");
      };
      link.run = async (script, keys, args) => {
        dieInTime(script);
        return await run(script, keys, args);
      };
      link.command = async (called, ...args) => {
        dieInTime(called);
        return await command(called, ...args);
      };
    };

    test.each([
      ["before any partition was taken in", "raise_window", 1],
      ["between two partitions", "raise_window", 3],
      ["before the end of the opening", "open_window", 1],
      ["before anything was deleted", "UNLINK", 1],
    ] as const)("%s is done by who comes next", async (_, name, nth) => {
      const options = { partitions: PARTITIONS, deployId: "deploy-3", force: false };
      const old = pod.window.current;
      const doomed = await bench.link();
      dieBefore(doomed, name, nth);
      await expect(resetWindow(doomed, options)).rejects.toThrow("killed");

      const found = await Promise.all([pod.window.adoptOpenWindow(), other.window.adoptOpenWindow()]);
      expect(new Set(found.map(({ id }) => id)).size).toBe(1);
      expect(found[0]?.id).not.toBe(old.id);
      expect(found[0]?.deployId).toBe("deploy-3");
      expect(await present()).toEqual([]);
      await pod.register("agent://new");
      expect(await resetWindow(await bench.link(), options)).toMatchObject({ outcome: "kept", windowId: found[0]?.id });
      const left = await bench.client.keys(`relay:*:${old.startedAt.toString(36)}*`);
      expect(left).toEqual([]);
      expect(await present()).toEqual(["agent://new"]);
    });

    test("before it began has done nothing", async () => {
      const doomed = await bench.link();
      dieBefore(doomed, "begin_window", 1);
      const options = { partitions: PARTITIONS, deployId: "deploy-3", force: false };
      await expect(resetWindow(doomed, options)).rejects.toThrow("killed");
      expect((await pod.window.adoptOpenWindow()).deployId).toBe("deploy-1");
      expect(await present()).toEqual(AGENTS.toSorted());
    });
  });
});
