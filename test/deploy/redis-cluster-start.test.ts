import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { forgetLost, joinAsReplica } from "../../deploy/local/cluster-forming.ts";
import type { ClusterNode, NodeRunner } from "../../deploy/local/cluster-node.ts";
import { EmbeddedCluster } from "../../deploy/local/embedded-cluster.ts";
import { startRelay } from "../../deploy/local/relay.ts";
import { COMPILE_CACHE } from "../support/compile-cache.ts";
import { passwordVariable, REDIS_USERS } from "../support/deployed-users.ts";
import { watchLeaks } from "../support/leaks.ts";
import { until } from "../support/until.ts";

const CREATE = fileURLToPath(new URL("../../deploy/redis/create-cluster.ts", import.meta.url));
const START = fileURLToPath(new URL("../../deploy/redis/start.sh", import.meta.url));
const HOST = "localhost";
const CREATOR = "cluster-create";
const REPLICA = "replica";
const noLeaks = watchLeaks();
afterAll(() => noLeaks());

/** Holds what a shell, a configuration file or a URL could stumble over. */
const passwordOf = (user: string) => `of ${user} "\\$HOME'%@:/#`;
const passwords = [...REDIS_USERS, CREATOR, REPLICA].map((user) => [passwordVariable(user), passwordOf(user)]);

/** The deployed script and users; asked as the one user that may make a cluster. */
const DEPLOYED: NodeRunner = {
  command: (folder, settings) => ["/usr/bin/env", `TMPDIR=${folder}`, "/bin/sh", START, ...settings],
  settings: {},
  // Nothing here starts a node that is missed already, but where a test waits itself.
  env: {
    PATH: process.env.PATH,
    REDIS_CLUSTER_HOSTNAME: HOST,
    REDIS_CLUSTER_START_WAIT: "0",
    ...Object.fromEntries(passwords),
  },
  login: [`AUTH ${CREATOR} ${JSON.stringify(passwordOf(CREATOR))}`],
};

/** Nodes as they are deployed, of which somebody else makes a cluster. */
class DeployedNodes extends EmbeddedCluster {
  all: readonly ClusterNode[] = [];

  override async start(): Promise<void> {
    this.all = await this.makeNodes(6);
    await Promise.all(this.all.map((node) => node.start()));
  }

  override async stop(): Promise<void> {
    await Promise.all(this.all.map((node) => node.stop()));
  }

  urlFor(user: string, nodes: readonly ClusterNode[] = this.all): string {
    const hosts = nodes.map(({ port }) => `${HOST}:${port}`).join(",");
    return `redis-cluster://${user}:${encodeURIComponent(passwordOf(user))}@${hosts}`;
  }
}

/** For a command that has to wait until its time is over: its clock goes twice as fast. A busy machine needs the rest. */
const HURRIED = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
    "const { now } = Date; const begun = now(); Date.now = () => begun + 2 * (now() - begun);",
  )}`,
};

async function create(url: string, more = {}): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...COMPILE_CACHE, ...more, REDIS_URL: url };
  const ended = promisify(execFile)(process.execPath, [CREATE], { env });
  return await ended.then(
    (said) => ({ code: 0, ...said }),
    (error) => ({ code: error.code, stdout: error.stdout, stderr: error.stderr }),
  );
}

describe("A Redis Cluster as it is deployed", () => {
  const cluster = new DeployedNodes({ runner: DEPLOYED, nodeTimeoutMs: 1000 });
  beforeAll(() => cluster.start());
  afterAll(() => cluster.stop());
  const roleOf = async (node: ClusterNode) =>
    /^role:(\w+)/m.exec(await node.ask("INFO replication").catch(() => ""))?.[1];
  const allKnow = async (known: ClusterNode) => {
    const [id, ...seen] = await Promise.all([known.id(), ...cluster.all.map((node) => node.ask("CLUSTER NODES"))]);
    expect(seen.filter((nodes) => nodes.includes(id))).toHaveLength(6);
  };
  const roles = async () => await Promise.all(cluster.all.map(roleOf));

  test("is made of six nodes that know nobody, by a user that can do nothing else", async () => {
    expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0 });
    expect(await roles()).toEqual(["master", "master", "master", "slave", "slave", "slave"]);
    const [node] = cluster.all as [ClusterNode];
    for (const command of ["GET relay:{0}:window", "CONFIG GET masterauth", "CLUSTER RESET", "FLUSHALL", "ACL LIST"]) {
      await expect(node.ask(command)).rejects.toThrow(/NOPERM/);
    }
  }, 60_000);

  test("has those that follow nobody and have no slots, as of a creation that was interrupted, follow somebody", async () => {
    const [, , , , replica] = cluster.all as [ClusterNode, ClusterNode, ClusterNode, ClusterNode, ClusterNode];
    const id = await replica.id();
    await replica.stop();
    await until("it is missed", async () =>
      new RegExp(`^${id} \\S+ \\S*fail\\b`, "m").test(await (cluster.all[0] as ClusterNode).ask("CLUSTER NODES")),
    );
    await replica.start();
    const others = cluster.all.filter((node) => node !== replica);
    await forgetLost(others);
    await replica.ask(`CLUSTER MEET ${(cluster.all[0] as ClusterNode).meeting}`);
    const newId = await replica.id();
    await until("all know it", async () => {
      const seen = await Promise.all(others.map((node) => node.ask("CLUSTER NODES")));
      return seen.every((nodes) => nodes.includes(newId));
    });
    expect(await roleOf(replica)).toBe("master");
    expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0, stdout: expect.stringContaining("1 node") });
    expect(await roles()).toEqual(["master", "master", "master", "slave", "slave", "slave"]);
  }, 60_000);

  test("names its nodes by their hosts", async () => {
    const [node] = cluster.all as [ClusterNode];
    expect((await node.ask("CLUSTER NODES")).match(/,localhost /g)).toHaveLength(6);
  });

  test.each(["gateway", "ws-connector", "ops-reporting"] as const)("carries %s, as its own user", async (service) => {
    const environment = { RELAY_PARTITIONS: "12", REDIS_URL: cluster.urlFor(service) };
    const relay = await startRelay({ services: [service], environment });
    await until("it is ready", async () => (await fetch(`${relay.url}/ready`)).status === 200);
    await relay.stop();
  });

  test("keeps the passwords out of the environment of a node, and that of a replica in a file of its own", async () => {
    const [node] = cluster.all as [ClusterNode];
    const pid = await node.pid();
    const places = await Promise.all(["cmdline", "environ"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")));
    expect(places[0]).toContain("redis-server");
    expect(places.join()).not.toContain(passwordOf(REPLICA));
    expect(places.join()).not.toContain("REDIS_PASSWORD");
    const replica = await stat(join(node.folder, `agent-relay-redis-${node.port}/replica.conf`));
    expect(replica.mode & 0o777).toBe(0o600);
  });

  test("has a node that was lost again, as the replica of whoever took its place", async () => {
    const [lost] = cluster.all as [ClusterNode];
    await lost.stop();
    await until("its replica is a primary", async () => (await roles())[3] === "master");
    await lost.start();
    expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0 });
    await allKnow(lost);
    expect(await roles()).toEqual(["slave", "master", "master", "master", "slave", "slave"]);
    expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0 });
  }, 60_000);

  test("has all know a replica that knows them, as when the one that had met it died before it told the others", async () => {
    const replica = cluster.all[(await roles()).indexOf("slave")] as ClusterNode;
    const id = await replica.id();
    await Promise.all(cluster.all.map((node) => node === replica || node.ask(`CLUSTER FORGET ${id}`)));
    expect((await create(cluster.urlFor(CREATOR))).stdout).toBe("all nodes know each other again\n");
    await allKnow(replica);
  }, 60_000);

  describe("that lost nodes", () => {
    type Six = [ClusterNode, ClusterNode, ClusterNode, ClusterNode, ClusterNode, ClusterNode];
    const slotsOf = async (node: ClusterNode) => (await node.ask("CLUSTER INFO")).match(/^cluster_slots_\w+:\d+/gm);
    const WHOLE = ["assigned:16384", "ok:16384", "pfail:0", "fail:0"].map((slots) => `cluster_slots_${slots}`);
    const isWhole = async () =>
      await until("all slots have an owner, for every node", async () => {
        const seen = await Promise.all(cluster.all.map(slotsOf));
        return seen.every((slots) => String(slots) === String(WHOLE));
      });
    const replicaOf = async (primary: ClusterNode) => {
      const id = await primary.id();
      const ids = await Promise.all(cluster.all.map(async (node) => await node.ask("CLUSTER NODES")));
      return cluster.all.find((_, n) => new RegExp(`myself,slave ${id}`).test(ids[n] as string));
    };
    const restart = async (...nodes: readonly ClusterNode[]) => {
      await Promise.all(nodes.map((node) => node.stop()));
      await Promise.all(nodes.map((node) => node.start()));
    };

    test("gives the slots of a primary that is gone with its replica to an empty node, and the window goes on", async () => {
      const [, primary, , , replica] = cluster.all as Six;
      const environment = { RELAY_PARTITIONS: "12", REDIS_URL: cluster.urlFor("gateway") };
      const relay = await startRelay({ services: ["gateway"], environment });
      const isReady = async (degraded?: readonly string[]) => {
        const ready = await fetch(`${relay.url}/ready`);
        const said = (await ready.json()) as { degraded?: readonly string[] };
        return ready.status === 200 && String(said.degraded) === String(degraded);
      };
      await until("it is ready", () => isReady());
      await restart(primary, replica);
      await until("it misses partitions", () => isReady(["partitions"]));
      expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0 });
      await isWhole();
      expect((await roles()).filter((role) => role === "master")).toHaveLength(3);
      expect(await replica.ask("INFO replication")).toMatch(/^master_link_status:up/m);
      await until("it misses none", () => isReady());
      await relay.stop();
    }, 120_000);

    test("is not called whole while slots have no owner, and is once a node that can be spared was started anew", async () => {
      const [primary, , other, third, replica] = [1, 0, 2, 3, 4].map((n) => cluster.all[n]) as Six;
      const rest = cluster.all.filter((node) => node !== primary && node !== replica);
      await Promise.all([primary.stop(), replica.stop()]);
      await until("all miss them", async () => {
        const seen = await Promise.all(rest.map((node) => node.ask("CLUSTER NODES")));
        return seen.every((nodes) => nodes.match(/\bfail\b(?!\?)/g)?.length === 2);
      });
      await Promise.all([primary.start(), replica.start()]);
      await forgetLost(rest);
      await joinAsReplica(primary, await other.id(), other);
      await joinAsReplica(replica, await third.id(), third);
      expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 1, stdout: "" });
      await restart(primary);
      expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0 });
      await isWhole();
    }, 120_000);

    test("keeps the slots for a primary that hangs", async () => {
      const [, , hung, , , replica] = cluster.all as Six;
      const pid = await hung.pid();
      await replica.stop();
      process.kill(pid, "SIGSTOP");
      await replica.start();
      expect(await create(cluster.urlFor(CREATOR), HURRIED)).toMatchObject({ code: 1, stdout: "" });
      process.kill(pid, "SIGCONT");
      const id = await hung.id();
      expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0 });
      await isWhole();
      expect(await hung.id()).toBe(id);
      expect(await roleOf(hung)).toBe("master");
    }, 120_000);

    test("has the replica of a primary that is gone take over, though nobody but the primary knew it", async () => {
      const primary = cluster.all[(await roles()).indexOf("master")] as ClusterNode;
      const replica = (await replicaOf(primary)) as ClusterNode;
      const others = cluster.all.filter((node) => node !== primary && node !== replica);
      for (const node of others) await node.ask(`CLUSTER FORGET ${await replica.id()}`);
      for (const node of others) await replica.ask(`CLUSTER FORGET ${await node.id()}`);
      await restart(primary);
      expect((await create(cluster.urlFor(CREATOR))).stdout).toMatch("all nodes know each other again");
      await isWhole();
      expect(await roleOf(replica)).toBe("master");
    }, 120_000);

    test("promotes the replica of a primary that is gone, where too few primaries are left to elect it", async () => {
      const primaries = async () => {
        const seen = await roles();
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
      const shard = cluster.all.filter((node) => !kept.includes(node));
      await Promise.all([...shard, elected].map((node) => node.stop()));
      await Promise.all([...shard, elected].map((node) => node.start()));
      // Not hurried: four nodes that start at once on a busy machine need its whole time.
      expect(await create(cluster.urlFor(CREATOR))).toMatchObject({ code: 0, stderr: "" });
      await isWhole();
      expect(await roleOf(heir)).toBe("master");
    }, 180_000);
  });

  describe("of which a primary dies and is started again at once", () => {
    const patient = { ...DEPLOYED, env: { ...DEPLOYED.env, REDIS_CLUSTER_START_WAIT: "4" } };
    const six = new DeployedNodes({ runner: patient, nodeTimeoutMs: 1000 });
    beforeAll(() => six.start());
    afterAll(() => six.stop());
    const keysOf = async (node: ClusterNode) => Number(/keys=(\d+)/.exec(await node.ask("INFO keyspace"))?.[1] ?? 0);

    test("keeps what the primary had: its replica takes over before the place is taken", async () => {
      const [primary, , , replica] = six.all as [ClusterNode, ClusterNode, ClusterNode, ClusterNode];
      expect(await create(six.urlFor(CREATOR))).toMatchObject({ code: 0 });
      const environment = { RELAY_PARTITIONS: "12", REDIS_URL: six.urlFor("gateway") };
      const relay = await startRelay({ services: ["gateway"], environment });
      await until("it is ready", async () => (await fetch(`${relay.url}/ready`)).status === 200);
      await until("the replica has all", async () => (await keysOf(replica)) > 0);
      process.kill(await primary.pid(), "SIGKILL");
      await primary.stop();
      await primary.start();
      expect(await roleOf(replica)).toBe("master");
      expect(await keysOf(replica)).toBeGreaterThan(0);
      expect(await create(six.urlFor(CREATOR))).toMatchObject({ code: 0 });
      expect(await roleOf(primary)).toBe("slave");
      await relay.stop();
    }, 120_000);
  });

  test.each([
    ["one Redis", () => "redis://127.0.0.1:1"],
    ["fewer than six", () => cluster.urlFor(CREATOR, cluster.all.slice(0, 3))],
    ["an odd number", () => cluster.urlFor(CREATOR, [...cluster.all, ...cluster.all.slice(0, 1)])],
  ])("is not made of %s", async (_what, url) => {
    expect(await create(url())).toMatchObject({ code: 78, stderr: expect.stringContaining("REDIS_URL") });
  });
});
