import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { GuardedCluster } from "../../../test/support/deployed-users.ts";
import type { RedisUser } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { addFeedback, Counters } from "../src/counters/counters.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import type { ClusterLinks } from "../src/redis/connect.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { everyPartition, slotOfPartition } from "../src/redis/partitions.ts";
import type { ScriptName } from "../src/redis/scripts.ts";
import { observeWindow } from "../src/window/observe.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { readReadiness } from "../src/window/readiness.ts";
import { resetWindow } from "../src/window/reset.ts";
import { clusterBench, timed } from "./cluster-kit.ts";
import { messageOf } from "./envelopes.ts";
import { podOn } from "./kit.ts";

const PARTITIONS = 12;
const AGENTS = Array.from({ length: 40 }, (_, n) => `agent://a${n}`);
const bench = clusterBench(new GuardedCluster());
const { cluster } = bench;

/** A gateway's view of the window. */
class Service {
  readonly links: ClusterLinks;
  readonly window: ProcessWindow;
  readonly #presence: PresenceStore;
  readonly #metrics = new ServiceMetrics("gateway");

  /** @param deployId null for who opens no window, and reads alone. */
  constructor(links: ClusterLinks, deployId: string | null) {
    this.links = links;
    this.window = new ProcessWindow({ link: links, partitions: PARTITIONS, deployId, logger: bench.logger });
    this.#presence = new PresenceStore({ link: links, window: this.window, ...PRESENCE_LIMITS });
    observeWindow(this.#metrics, links, this.window);
  }

  /** What a service does that starts. */
  static async start(deployId = "deploy-1"): Promise<Service> {
    const service = new Service(bench.links(deployId), deployId);
    await service.links.start();
    await service.window.start();
    bench.later(() => service.window.stop());
    return service;
  }

  readiness() {
    const { links: link, window } = this;
    return readReadiness("gateway", { link, window, presenceStore: this.#presence });
  }

  /** As the metric tells. */
  async outOfReach(): Promise<number> {
    const text = await this.#metrics.registry.metrics();
    return Number(/^relay_partitions_out_of_reach\{.*\} (\d+)$/m.exec(text)?.[1]);
  }

  /** Writes into a partition in the window that is known. */
  write(p: number) {
    const write = ({ id, keys }: ProcessWindow["current"]) =>
      this.links.run("release", [keys.partition(p).online, keys.partition(p).route], [id, "nobody"]);
    return timed(this.window.known().then(write));
  }
}

/** Which node has each partition. */
async function owners(): Promise<ClusterNode[]> {
  return await Promise.all(everyPartition(PARTITIONS).map((p) => cluster.primaryOf(partitionKeys.window(p))));
}

async function generations(links: ClusterLinks): Promise<unknown[]> {
  return await Promise.all(
    everyPartition(PARTITIONS).map((p) => links.command("HGET", partitionKeys.window(p), "generation")),
  );
}

/** The primary that has the control slot, and another one. */
async function primaries(): Promise<{ readonly control: ClusterNode; readonly other: ClusterNode }> {
  const control = await cluster.primaryOf(controlKeys.window);
  const other = (await bench.primaries()).find((node) => node !== control) as ClusterNode;
  return { control, other };
}

/** Neither the primary nor its replica answers, until `back`. A service starts meanwhile. */
async function hang(primary: ClusterNode) {
  const shard = [primary, await cluster.replicaOf(primary)];
  for (const node of shard) await cluster.pause(node);
  const [started] = await Promise.all([Service.start("deploy-3"), cluster.untilGivenUp(primary)]);
  return {
    started,
    back: async () => {
      for (const node of shard) await cluster.resume(node);
    },
  };
}

describe("a primary that was emptied", () => {
  test.each(["other", "control"] as const)(
    "(%s) is followed by one window of all services, in which the other primaries keep their state",
    async (which) => {
      const services = [await Service.start("deploy-1"), await Service.start("deploy-2")] as const;
      const [{ links, window }] = services;
      const emptied = (await primaries())[which];
      const [before, at, { id, deployId }] = [await generations(links), await owners(), window.current];
      await emptied.ask("FLUSHALL");
      await until("all are in the next window", () =>
        services.every((one) => one.window.current.id !== id && one.window.current.id === window.current.id),
      );
      expect(window.current.deployId).toBe(deployId);
      const after = await generations(links);
      for (const p of everyPartition(PARTITIONS)) expect(after[p] === before[p]).toBe(at[p] !== emptied);
      expect(await services[1].readiness()).toMatchObject({ ready: true });
    },
  );
});

describe("while a shard hangs with its replica", () => {
  test("a service that starts is ready for the other partitions, names those, resets nothing, and has all when it is back", async () => {
    const living = await Service.start("deploy-1");
    const { id, deployId } = living.window.current;
    const { other } = await primaries();
    const at = await owners();
    const lost = everyPartition(PARTITIONS).filter((p) => at[p] === other);
    const { started, back } = await hang(other);
    for (const service of [living, started]) {
      const partial = { ready: true, degraded: ["partitions"], unavailable_partitions: lost };
      await until("it names them", async () => isMatch(await service.readiness(), partial));
      expect(await service.outOfReach()).toBe(lost.length);
      for (const p of everyPartition(PARTITIONS)) {
        if (lost.includes(p)) expect(await service.write(p)).toMatchObject({ refused: "undone" });
        else expect(await service.write(p)).not.toHaveProperty("refused");
      }
      expect(service.window.current).toMatchObject({ id, deployId });
    }
    const options = { partitions: PARTITIONS, deployId: "deploy-3", force: true };
    expect(await timed(resetWindow(living.links, options))).toHaveProperty("refused");

    await back();
    for (const service of [living, started]) {
      await until("it has them all", async () => !("degraded" in (await service.readiness())));
      for (const p of everyPartition(PARTITIONS)) expect(await service.write(p)).not.toHaveProperty("refused");
      expect(service.window.current.id).toBe(id);
      expect(await service.outOfReach()).toBe(0);
    }
    expect(started.window.current.keys.generations).toEqual(living.window.current.keys.generations);
  });

  test("that has the control slot, who knows the window goes on in it, and who starts waits", async () => {
    const living = await Service.start("deploy-1");
    const { id } = living.window.current;
    const { control } = await primaries();
    const at = await owners();
    const lost = everyPartition(PARTITIONS).filter((p) => at[p] === control);
    const { started, back } = await hang(control);
    const partial = { ready: true, degraded: ["control_slot", "partitions"], unavailable_partitions: lost };
    await until("it says so", async () => isMatch(await living.readiness(), partial));
    const others = everyPartition(PARTITIONS).filter((p) => !lost.includes(p));
    for (const p of others) expect(await living.write(p)).not.toHaveProperty("refused");

    expect(await started.readiness()).toMatchObject({ ready: false });
    expect(started.window.isKnown).toBe(false);
    await back();
    await until("it is ready", async () => (await started.readiness()).ready);
    expect(started.window.current.id).toBe(id);
  });
});

test("Who reads alone works in a partition whose slot nobody had when it started, as soon as somebody has it", async () => {
  await Service.start("deploy-1");
  const slot = slotOfPartition(0);
  const owner = await cluster.primaryOf(slot);
  for (const node of cluster.nodes) await node.ask(`CLUSTER DELSLOTS ${slot}`);
  const { links, window } = new Service(bench.links("reader"), null);
  await links.start();
  await until("the window is known", () => window.isKnown);
  expect(window.current.keys.generations[0]).toBeNull();
  await owner.ask(`CLUSTER ADDSLOTS ${slot}`, "CLUSTER BUMPEPOCH");
  await until("the partition is worked in", () => window.current.keys.generations[0] !== null);
});

function isMatch(state: object, expected: object): boolean {
  return Object.entries(expected).every(([name, value]) =>
    isDeepStrictEqual((state as Record<string, unknown>)[name], value),
  );
}

const podAs = async (user: RedisUser) =>
  podOn(await bench.started(user, cluster.urlFor(user)), { partitions: PARTITIONS });

/** Names of the keys of a window's number and generation, by the primary that has them. */
async function keysOf(startedAt: number, nodes?: readonly ClusterNode[]): Promise<string[][]> {
  const said = await Promise.all((nodes ?? (await bench.primaries())).map((node) => node.ask("KEYS relay:*")));
  const ending = `:${startedAt.toString(36)}`;
  return said.map((names) =>
    [...names.matchAll(/^relay:\S+/gm)].map(([name]) => name).filter((n) => n.includes(ending)),
  );
}

/** A primary that is not this one, and the partitions that it has. */
async function anyBut(node: ClusterNode): Promise<{ readonly lost: ClusterNode; readonly partitions: number[] }> {
  const owners = await Promise.all(everyPartition(PARTITIONS).map((p) => cluster.primaryOf(partitionKeys.window(p))));
  const lost = owners.find((owner) => owner !== node) as ClusterNode;
  return { lost, partitions: everyPartition(PARTITIONS).filter((p) => owners[p] === lost) };
}

/** Something befalls the cluster before a script is called for the first time. */
function justBefore(links: ClusterLinks, script: ScriptName, befall: () => Promise<void>): void {
  const run = links.run.bind(links);
  let befallen: Promise<void> | undefined;
  links.run = async (name, ...rest) => {
    if (name === script) befallen ??= befall();
    await befallen;
    return await run(name, ...rest);
  };
}

/** Presence, routes, sessions, proofs and counts, in every partition and in the control slot. */
async function fill(): Promise<void> {
  const [pod, gateway] = [await podAs("ws-connector"), await podAs("gateway")];
  for (const agent of AGENTS) await pod.register(agent);
  for (const [n, agent] of AGENTS.entries()) {
    await pod.accept(messageOf(agent, AGENTS[(n + 1) % AGENTS.length] as string));
    await pod.request(agent, AGENTS[(n + 2) % AGENTS.length] as string);
  }
  const counters = new Counters(gateway);
  counters.view("readSession", "visitor-1");
  await counters.flush();
  await addFeedback(gateway.link, gateway.window, { message: "text" });
}

test("After a reset nothing of the windows before is left on any primary, but the replay guard", async () => {
  const options = { partitions: PARTITIONS, deployId: "deploy-1", force: true };
  const admin = await bench.started("window-reset", cluster.urlFor("window-reset"));
  await resetWindow(admin, options);
  await fill();
  const { window } = await podAs("ws-connector");
  const { startedAt: old } = await window.adoptOpenWindow();
  const before = await keysOf(old);
  expect(Math.min(...before.map((keys) => keys.length))).toBeGreaterThan(50);

  const outcome = await resetWindow(admin, options);
  expect(outcome).toMatchObject({ outcome: "opened", deletedKeys: before.flat().length });
  expect((await keysOf(old)).flat()).toEqual([]);
  const guards = await Promise.all((await bench.primaries()).map((node) => node.ask("KEYS relay:*:seen:*")));
  for (const kept of guards) expect(kept).toContain(":seen:");
});

test("A reset that loses a shard in its middle is done without it, and so again, until one finds it back and does the rest", async () => {
  const options = { partitions: PARTITIONS, deployId: "deploy-2", force: false };
  const admin = await bench.started("window-reset", cluster.urlFor("window-reset"));
  await fill();
  const { window } = await podAs("ws-connector");
  const { startedAt: old } = await window.adoptOpenWindow();
  const { lost, partitions } = await anyBut(await cluster.primaryOf(controlKeys.window));
  const shard = [lost, await cluster.replicaOf(lost)];
  justBefore(admin, "raise_window", async () => {
    for (const node of shard) await cluster.pause(node);
    await cluster.untilGivenUp(lost);
  });

  const opened = await resetWindow(admin, options);
  expect(opened).toMatchObject({ outcome: "opened", leftPartitions: partitions.length });
  expect(
    (
      await keysOf(
        old,
        (await bench.primaries()).filter((node) => node !== lost),
      )
    ).flat(),
  ).toEqual([]);
  expect(await resetWindow(admin, options)).toEqual({ ...opened, outcome: "kept", deletedKeys: 0 });
  await expect(resetWindow(admin, { ...options, force: true })).rejects.toMatchObject({ code: "unavailable" });

  for (const node of shard) await cluster.resume(node);
  await until("a reset finds all partitions", async () => {
    const again = await resetWindow(admin, options).catch(() => undefined);
    return again?.outcome === "kept" && again.leftPartitions === 0;
  });
  expect((await keysOf(old)).flat()).toEqual([]);
});
