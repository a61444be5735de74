import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import { CommandTimeoutError } from "../src/redis/client.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { LinkDownError } from "../src/redis/link-state.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { type RedisCalls, unavailable } from "../src/redis/redis-calls.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import { ReachLog } from "../src/window/observe.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { readReadiness } from "../src/window/readiness.ts";
import { resetWindow } from "../src/window/reset.ts";
import { beginWindow, readControl, readPartitions } from "../src/window/window-records.ts";
import { messageOf } from "./envelopes.ts";
import { LOGGER, type Pod, redisBench } from "./kit.ts";

/** A link on which some keys are refused as those of a primary that is lost. */
class PartialLink {
  readonly link: RedisLink;
  #lost: readonly string[] = [];

  constructor(link: RedisLink) {
    this.link = link;
    const [run, command] = [link.run.bind(link), link.command.bind(link)];
    link.run = async (script, keys, args) => {
      this.#refuse(keys[0]);
      return await run(script, keys, args);
    };
    link.command = async (name, ...args) => {
      this.#refuse(args[0]);
      return await command(name, ...args);
    };
  }

  /** From here on all keys in the slots of these are out of reach, and no others. */
  lose(...keys: readonly string[]): void {
    this.#lost = keys.map(tagOf);
  }

  #refuse(key: unknown): void {
    if (this.#lost.includes(tagOf(String(key)))) throw unavailable(new LinkDownError("refused", "lost by the test"));
  }
}

function tagOf(key: string): string {
  return /\{(\w+)\}/.exec(key)?.[1] ?? "";
}

describe("a window of which a part is out of reach:", () => {
  const bench = redisBench();
  const PARTITIONS = 4;
  const LOST = 2;
  const UNAVAILABLE = { code: "unavailable" };
  const AGENTS = Array.from({ length: 12 }, (_, n) => `agent://a${n}`);
  const HERE = AGENTS.filter((agent) => partitionOf(agent, PARTITIONS) !== LOST);
  const [THERE] = AGENTS.filter((agent) => partitionOf(agent, PARTITIONS) === LOST) as [string];
  const lostPartition = partitionKeys.window(LOST);
  const lostControl = controlKeys.window;
  let pod: Pod;
  let reach: PartialLink;

  beforeEach(async () => {
    pod = await bench.pod({ partitions: PARTITIONS });
    for (const agent of AGENTS) await pod.register(agent);
    reach = new PartialLink(pod.link);
  });

  /** A service that starts while some keys are out of reach. */
  async function newcomer(...lost: readonly string[]) {
    const partial = new PartialLink(await bench.link());
    partial.lose(...lost);
    const { link } = partial;
    return {
      partial,
      link,
      window: new ProcessWindow({ link, partitions: PARTITIONS, deployId: "deploy-9", logger: LOGGER }),
    };
  }

  function readinessOf({ link, window }: { link: Pod["link"]; window: ProcessWindow }) {
    const presenceStore = new PresenceStore({ link, window, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
    return readReadiness("gateway", { link, window, presenceStore });
  }

  const generations = () =>
    Promise.all(AGENTS.slice(0, PARTITIONS).map((_, p) => bench.client.hget(partitionKeys.window(p), "generation")));

  describe("while one partition is out of reach", () => {
    test("its agents are unavailable, the others go on, and the window stays", async () => {
      const before = await bench.client.hgetall(controlKeys.window);
      reach.lose(lostPartition);
      await pod.window.adoptOpenWindow();
      expect(await pod.heartbeat(THERE)).toEqual({ outcome: "unavailable", done: false });
      for (const agent of HERE) expect(await pod.heartbeat(agent)).toMatchObject({ outcome: "accepted" });
      expect(await bench.client.hgetall(controlKeys.window)).toEqual(before);
    });

    test("who starts works in the others, and there too once it answers, under the names that it had", async () => {
      const { window, partial } = await newcomer(lostPartition);
      const { id } = await window.adoptOpenWindow();
      expect(id).toBe(pod.window.current.id);
      expect(window.current.keys.partition(0).route).toBe(pod.window.current.keys.partition(0).route);
      expect(() => window.current.keys.partition(LOST)).toThrow(expect.objectContaining(UNAVAILABLE));
      partial.lose();
      await window.adoptIfChanged();
      expect(window.current.keys.partition(LOST).route).toBe(pod.window.current.keys.partition(LOST).route);
      expect(await bench.client.hget(controlKeys.window, "id")).toBe(id);
    });

    test("who saw one answer and then another knows both", async () => {
      const { window, partial } = await newcomer(partitionKeys.window(1), lostPartition);
      await window.adoptOpenWindow();
      partial.lose(partitionKeys.window(3), lostPartition);
      await window.adoptIfChanged();
      partial.lose(partitionKeys.window(1));
      await window.adoptIfChanged();
      expect(window.current.keys.generations).toEqual(pod.window.current.keys.generations);
      for (const p of [1, 3, LOST]) {
        expect(window.current.keys.partition(p).route).toBe(pod.window.current.keys.partition(p).route);
      }
    });

    test("a loss elsewhere is followed by a window that is open without it, and keeps what it holds when it is back", async () => {
      const before = await generations();
      await bench.client.del(partitionKeys.window(1));
      reach.lose(lostPartition);
      const open = await pod.window.adoptOpenWindow();
      expect(await bench.client.hgetall(controlKeys.window)).toMatchObject({ id: open.id, state: "open" });
      for (const agent of HERE) expect(await pod.heartbeat(agent)).toMatchObject({ outcome: "accepted" });
      reach.lose();
      await pod.window.adoptIfChanged();
      expect((await generations()).toSpliced(1, 1)).toEqual(before.toSpliced(1, 1));
      expect(await pod.accept(messageOf(HERE[0] as string, THERE))).toMatchObject({ delivery: "stale" });
    });

    test("a window that begins with nothing takes nothing of before into it when the partition is back", async () => {
      const [before, control] = [await generations(), await readControl(pod.link)];
      const records = await readPartitions(pod.link, PARTITIONS);
      await beginWindow(pod.link, control, records, { partitions: PARTITIONS, deployId: "deploy-2", since: null });
      reach.lose(lostPartition);
      await pod.window.adoptOpenWindow();
      expect((await generations())[LOST]).toBe(before[LOST]);
      reach.lose();
      await pod.window.adoptIfChanged();
      for (const [p, generation] of (await generations()).entries()) expect(generation).not.toBe(before[p]);
      expect(await pod.accept(messageOf(HERE[0] as string, THERE))).toMatchObject({ delivery: "not_seen" });
    });

    test("a reset does nothing", async () => {
      const before = await bench.client.hgetall(controlKeys.window);
      reach.lose(lostPartition);
      const options = { partitions: PARTITIONS, deployId: "deploy-2", force: true };
      await expect(resetWindow(pod.link, options)).rejects.toMatchObject(UNAVAILABLE);
      expect(await bench.client.hgetall(controlKeys.window)).toEqual(before);
    });

    test("a reset for the same deploy keeps the window, and all that lies there, also when it answers meanwhile", async () => {
      const keysThere = async () => (await bench.client.keys(lostPartition.replace("window", "*"))).toSorted();
      const kept = await keysThere();
      await bench.client.del(partitionKeys.window(1));
      await pod.window.adoptOpenWindow();
      reach.lose(lostPartition);
      const command = pod.link.command.bind(pod.link);
      pod.link.command = (name, ...args) => {
        if (name === "SCAN") reach.lose();
        return command(name, ...args);
      };
      const options = { partitions: PARTITIONS, deployId: "deploy-1", force: false };
      const outcome = await resetWindow(pod.link, options);
      expect(outcome).toMatchObject({ outcome: "kept", windowId: pod.window.current.id, leftPartitions: 1 });
      expect(await keysThere()).toEqual(kept);
    });

    test("a service is ready, and names it", async () => {
      const state = await readinessOf(pod);
      expect(state).toMatchObject({ ready: true, online_agents: AGENTS.length });
      for (const absent of ["degraded", "unavailable_partitions", "reason"]) expect(state).not.toHaveProperty(absent);
      reach.lose(lostPartition);
      const partial = { ready: true, degraded: ["partitions"], unavailable_partitions: [LOST] };
      expect(await readinessOf(pod)).toMatchObject({ ...partial, online_agents: HERE.length });
      expect(await readinessOf(await newcomer(lostPartition))).toMatchObject(partial);
    });
  });

  test("A service that reaches no partition is not ready, and says why, as with one Redis", async () => {
    reach.lose(...AGENTS.slice(0, PARTITIONS).map((_, p) => partitionKeys.window(p)));
    const state = await readinessOf(pod);
    expect(state).toMatchObject({ ready: false, reason: "refused", online_agents: null });
    expect(state).not.toHaveProperty("unavailable_partitions");
  });

  describe("while the control slot is out of reach", () => {
    test("who knows the window goes on in it, and waits for no answer about another one", async () => {
      reach.lose(lostControl);
      await expect(pod.window.adoptOpenWindow()).rejects.toMatchObject(UNAVAILABLE);
      for (const agent of AGENTS) expect(await pod.heartbeat(agent)).toMatchObject({ outcome: "accepted" });
      const { promise, reject } = Promise.withResolvers<never>();
      const run = pod.link.run.bind(pod.link);
      pod.link.run = (script, ...rest) => (script === "read_window" ? promise : run(script, ...rest));
      const adopting = pod.window.adoptOpenWindow();
      expect(await pod.heartbeat(THERE)).toMatchObject({ outcome: "accepted" });
      reject(unavailable());
      await expect(adopting).rejects.toMatchObject(UNAVAILABLE);
    });

    test("who starts is not ready, and opens no window, also where the partitions answer", async () => {
      const started = await newcomer(lostControl);
      await expect(started.window.adoptOpenWindow()).rejects.toMatchObject(UNAVAILABLE);
      expect(await readinessOf(started)).toMatchObject({ ready: false, reason: "refused" });
      expect(await bench.client.hget(lostPartition, "id")).toBe(pod.window.current.id);
    });
  });

  describe("where the control slot was lost", () => {
    beforeEach(async () => void (await bench.client.del(controlKeys.window, controlKeys.salt)));

    test("what the partitions say of the window holds, not what the first to come would have", async () => {
      const { window } = await newcomer();
      const before = await generations();
      expect(await window.adoptOpenWindow()).toMatchObject({ deployId: "deploy-1", partitions: PARTITIONS });
      expect(await generations()).toEqual(before);
    });

    test.each([1, 2, 12])("who has %i partitions where there were four changes nothing", async (partitions) => {
      const before = await bench.client.keys("*");
      const link = await bench.link();
      const window = new ProcessWindow({ link, partitions, deployId: "deploy-9", logger: LOGGER });
      await expect(window.adoptOpenWindow()).rejects.toMatchObject(UNAVAILABLE);
      expect(link.downKind).toBe("partitions");
      expect((await bench.client.keys("*")).toSorted()).toEqual(before.toSorted());
    });

    test("nobody decides while only what is out of reach may know", async () => {
      const all = AGENTS.slice(0, PARTITIONS).map((_, p) => partitionKeys.window(p));
      await bench.client.del(...all.filter((key) => key !== lostPartition));
      const { window } = await newcomer(lostPartition);
      await expect(window.adoptOpenWindow()).rejects.toMatchObject(UNAVAILABLE);
      expect(await bench.client.exists(controlKeys.window)).toBe(0);
    });

    test("a reset for the same deploy keeps what the partitions hold", async () => {
      const before = await generations();
      const options = { partitions: PARTITIONS, deployId: "deploy-1", force: false };
      expect(await resetWindow(await bench.link(), options)).toMatchObject({ outcome: "kept" });
      expect(await generations()).toEqual(before);
    });

    test("in the middle of a reset, the reset is done", async () => {
      await pod.window.adoptOpenWindow();
      const before = await generations();
      const control = await readControl(pod.link);
      await beginWindow(pod.link, control, [], { partitions: PARTITIONS, deployId: "deploy-2", since: null });
      reach.lose(...[1, 2, 3].map((p) => partitionKeys.window(p)));
      await pod.window.adoptOpenWindow();
      reach.lose();
      await bench.client.del(controlKeys.window, controlKeys.salt);
      expect(await pod.window.adoptOpenWindow()).toMatchObject({ deployId: "deploy-2" });
      for (const [p, generation] of (await generations()).entries()) expect(generation).not.toBe(before[p]);
    });
  });

  test("A session request is counted without what is out of reach, and refused while a partition is slow to answer", async () => {
    const [from, to] = HERE as [string, string];
    reach.lose(lostPartition);
    expect(await pod.request(from, to)).toMatchObject({ outcome: "accepted" });
    const run = pod.link.run.bind(pod.link);
    pod.link.run = async (script, ...rest) => {
      if (script === "count_sessions") throw unavailable(new CommandTimeoutError());
      return await run(script, ...rest);
    };
    await expect(pod.request(from, to)).rejects.toThrow();
  });
});

describe("the log of partitions that are out of reach", () => {
  /** Partitions whose primary is down. */
  let lost: number[];
  let lines: string[];

  beforeEach(() => {
    [lost, lines] = [[], []];
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  const isLost = (key: string) => lost.some((p) => partitionKeys.window(p) === key);
  const link = { name: "gateway", serverOf: (key: string) => ({ up: !isLost(key) }) } as unknown as RedisCalls;

  /** Runs for a while. Returns what it told of. */
  async function told(partitions: number, whatHappens: () => void): Promise<object[]> {
    const logger = createLogger({ service: "test", level: "warn" }, { write: (line) => void lines.push(line) });
    const log = new ReachLog({ link, partitions, logger });
    await log.start();
    whatHappens();
    await log.stop();
    jest.advanceTimersByTime(60_000);
    return lines.map((line) => JSON.parse(line)).map(({ out_of_reach, back }) => ({ out_of_reach, back }));
  }

  test("The log tells once which partitions go out of reach, and once that they are back", async () => {
    const lines = await told(4, () => {
      lost = [1, 3];
      jest.advanceTimersByTime(20_000);
      lost = [3];
      jest.advanceTimersByTime(20_000);
      lost = [];
      jest.advanceTimersByTime(20_000);
    });
    expect(lines).toEqual([
      { out_of_reach: [1, 3], back: [] },
      { out_of_reach: [3], back: [1] },
      { out_of_reach: [], back: [3] },
    ]);
  });

  test("Partitions that come and go do not fill the log: after a line there is none for five seconds", async () => {
    const lines = await told(4, () => {
      for (let n = 0; n < 10; n += 1) {
        lost = n % 2 === 0 ? [1] : [];
        jest.advanceTimersByTime(1000);
      }
    });
    expect(lines.length).toBeLessThanOrEqual(2);
  });

  test("A window of one partition has no such lines: those of its link say the same", async () => {
    const lines = await told(1, () => {
      lost = [0];
      jest.advanceTimersByTime(20_000);
    });
    expect(lines).toEqual([]);
  });
});
