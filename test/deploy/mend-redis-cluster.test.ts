import { beforeAll, expect, jest, test } from "@jest/globals";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { startRelay } from "../../deploy/local/relay.ts";
import { joinAsReplica } from "../../deploy/redis/cluster-forming.ts";
import { until } from "../support/until.ts";
import { deployedNodes, roleOf, type Six, untilReady } from "./deployed-nodes.ts";

/** What create-cluster.ts does with a Redis Cluster, as it is deployed, that lost nodes. */
const cluster = deployedNodes();
beforeAll(async () => {
  expect(await cluster.create()).toMatchObject({ code: 0 });
});

const WHOLE = ["assigned:16384", "ok:16384", "pfail:0", "fail:0"].map((slots) => `cluster_slots_${slots}`);
const slotsOf = async (node: ClusterNode) => (await node.ask("CLUSTER INFO")).match(/^cluster_slots_\w+:\d+/gm);

async function isWhole(): Promise<void> {
  await until("all slots have an owner, for every node", async () => {
    const seen = await Promise.all(cluster.all.map(slotsOf));
    return seen.every((slots) => String(slots) === String(WHOLE));
  });
}

async function replicaOf(primary: ClusterNode): Promise<ClusterNode | undefined> {
  const id = await primary.id();
  const seen = await Promise.all(cluster.all.map((node) => node.ask("CLUSTER NODES")));
  return cluster.all.find((_, n) => new RegExp(`myself,slave ${id}`).test(seen[n] as string));
}

async function expectAllKnow(known: ClusterNode): Promise<void> {
  const [id, ...seen] = await Promise.all([known.id(), ...cluster.all.map((node) => node.ask("CLUSTER NODES"))]);
  expect(seen.filter((nodes) => nodes.includes(id))).toHaveLength(6);
}

test("A node that was lost is in the cluster again, as the replica of whoever took its place", async () => {
  const [lost, , , heir] = cluster.six;
  await lost.stop();
  await heir.ask("CLUSTER FAILOVER FORCE");
  await until("its replica is a primary", async () => (await roleOf(heir)) === "master");
  await lost.start();
  expect(await cluster.create()).toMatchObject({ code: 0 });
  await expectAllKnow(lost);
  expect(await cluster.roles()).toEqual(["slave", "master", "master", "master", "slave", "slave"]);
  expect(await cluster.create()).toMatchObject({ code: 0 });
});

test("All nodes know a replica that knows them, as when the one that had met it died before it told the others", async () => {
  const replica = cluster.all[(await cluster.roles()).indexOf("slave")] as ClusterNode;
  await cluster.forget(
    [replica],
    cluster.all.filter((node) => node !== replica),
  );
  expect((await cluster.create()).stdout).toBe("all nodes know each other again\n");
  await expectAllKnow(replica);
});

test("The slots of a primary that is gone with its replica are given to an empty node, and the window goes on", async () => {
  const [, primary, , , replica] = cluster.six;
  const environment = { RELAY_PARTITIONS: "12", REDIS_URL: cluster.urlFor("gateway") };
  const relay = await startRelay({ services: ["gateway"], environment });
  await untilReady(relay.url);
  await cluster.restart(primary, replica);
  await untilReady(relay.url, ["partitions"]);
  expect(await cluster.create()).toMatchObject({ code: 0 });
  await isWhole();
  expect((await cluster.roles()).filter((role) => role === "master")).toHaveLength(3);
  expect(await replica.ask("INFO replication")).toMatch(/^master_link_status:up/m);
  await untilReady(relay.url);
  await relay.stop();
});

test("A cluster is not called whole while slots have no owner, and is once a node that can be spared was started anew", async () => {
  const [, primary, other, third, replica] = cluster.six;
  await cluster.forget(
    [primary, replica],
    cluster.all.filter((node) => node !== primary && node !== replica),
  );
  await cluster.restart(primary, replica);
  await joinAsReplica(primary, await other.id(), other);
  await joinAsReplica(replica, await third.id(), third);
  expect(await cluster.create()).toMatchObject({ code: 1, stdout: "" });
  await cluster.restart(primary);
  expect(await cluster.create()).toMatchObject({ code: 0 });
  await isWhole();
});

test("A primary that hangs keeps its slots", async () => {
  const [, , hung, , , replica] = cluster.six;
  const pid = await hung.pid();
  await replica.stop();
  process.kill(pid, "SIGSTOP");
  await replica.start();
  // The command waits 20 s for a node: they are over after one attempt.
  const { now } = Date;
  const begun = now();
  const clock = jest.spyOn(Date, "now").mockImplementation(() => begun + 10 * (now() - begun));
  try {
    expect(await cluster.create()).toMatchObject({ code: 1, stdout: "" });
  } finally {
    clock.mockRestore();
    process.kill(pid, "SIGCONT");
  }
  const id = await hung.id();
  expect(await cluster.create()).toMatchObject({ code: 0 });
  await isWhole();
  expect(await hung.id()).toBe(id);
  expect(await roleOf(hung)).toBe("master");
});

test("The replica of a primary that is gone takes over, though nobody but the primary knew it", async () => {
  const primary = cluster.all[(await cluster.roles()).indexOf("master")] as ClusterNode;
  const replica = (await replicaOf(primary)) as ClusterNode;
  const others = cluster.all.filter((node) => node !== primary && node !== replica);
  await cluster.forget([replica], others);
  await cluster.forget(others, [replica]);
  await cluster.restart(primary);
  expect((await cluster.create()).stdout).toMatch("all nodes know each other again");
  await isWhole();
  expect(await roleOf(replica)).toBe("master");
});

test("The replica of a primary that is gone is promoted if too few primaries are left to elect it", async () => {
  const primaries = async () => {
    const seen = await cluster.roles();
    return cluster.all.filter((_, n) => seen[n] === "master");
  };
  let kept: (ClusterNode | undefined)[] = [];
  await until("two of three primaries have a replica each", async () => {
    const all = await primaries();
    const [spared, elected] = all as Six;
    kept = [spared, elected, await replicaOf(spared), await replicaOf(elected)];
    return all.length === 3 && !kept.includes(undefined);
  });
  const [, elected, , heir] = kept as Six;
  await cluster.restart(elected, ...cluster.all.filter((node) => !kept.includes(node)));
  expect(await cluster.create()).toMatchObject({ code: 0, stderr: "" });
  await isWhole();
  expect(await roleOf(heir)).toBe("master");
});
