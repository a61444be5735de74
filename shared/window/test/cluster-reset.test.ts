import { expect, test } from "@jest/globals";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { GuardedCluster } from "../../../test/support/guarded-cluster.ts";
import type { RedisUser } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { Counters } from "../src/counters.ts";
import { addFeedback } from "../src/feedback.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { everyPartition } from "../src/redis/partitions.ts";
import type { ScriptName } from "../src/redis/scripts.ts";
import { resetWindow } from "../src/reset.ts";
import { clusterBench } from "./cluster-kit.ts";
import { messageOf } from "./envelopes.ts";
import { podOn } from "./kit.ts";

const PARTITIONS = 12;
const AGENTS = Array.from({ length: 40 }, (_, n) => `agent://a${n}`);
const bench = clusterBench(new GuardedCluster());
const { cluster } = bench;

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

test("After a reset nothing of the windows before is left on any primary", async () => {
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
});

test("A reset leaves the replay guard at every primary", async () => {
  await fill();
  const admin = await bench.started("window-reset", cluster.urlFor("window-reset"));
  await resetWindow(admin, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
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
