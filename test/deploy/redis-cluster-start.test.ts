import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { startRelay } from "../../deploy/local/relay.ts";
import { until } from "../support/until.ts";
import {
  CREATOR,
  create,
  deployedNodes,
  passwordOf,
  REPLICA,
  roleOf,
  START_WAIT_S,
  untilReady,
} from "./deployed-nodes.ts";

/** A Redis Cluster as it is deployed. */
const cluster = deployedNodes();

const keysOf = async (node: ClusterNode) => Number(/keys=(\d+)/.exec(await node.ask("INFO keyspace"))?.[1] ?? 0);

test("A Redis Cluster is made of six nodes that know nobody, by a user that can do nothing else", async () => {
  expect(await cluster.create()).toEqual({ code: 0, stdout: "cluster made of 6 nodes\n", stderr: "" });
  expect(await cluster.roles()).toEqual(["master", "master", "master", "slave", "slave", "slave"]);
  const [node] = cluster.six;
  for (const command of ["GET relay:{0}:window", "CONFIG GET masterauth", "CLUSTER RESET", "FLUSHALL", "ACL LIST"]) {
    await expect(node.ask(command)).rejects.toThrow(/NOPERM/);
  }
});

test("A node that follows nobody and has no slots, as of a creation that was interrupted, is made a replica", async () => {
  const [first, , , , replica] = cluster.six;
  const others = cluster.all.filter((node) => node !== replica);
  await cluster.forget([replica], others);
  await cluster.restart(replica);
  await replica.ask(`CLUSTER MEET ${first.meeting}`);
  const id = await replica.id();
  await until("all know it", async () => {
    const seen = await Promise.all(others.map((node) => node.ask("CLUSTER NODES")));
    return seen.every((nodes) => nodes.includes(id));
  });
  expect(await roleOf(replica)).toBe("master");
  expect(await cluster.create()).toMatchObject({ code: 0, stdout: expect.stringContaining("1 node") });
  expect(await cluster.roles()).toEqual(["master", "master", "master", "slave", "slave", "slave"]);
});

test("The nodes are named by their hosts", async () => {
  const [node] = cluster.six;
  expect((await node.ask("CLUSTER NODES")).match(/,localhost /g)).toHaveLength(6);
});

test.each(["gateway", "ws-connector", "ops-reporting"] as const)(
  "The cluster carries %s, as its own user",
  async (service) => {
    const environment = { RELAY_PARTITIONS: "12", REDIS_URL: cluster.urlFor(service) };
    const relay = await startRelay({ services: [service], environment });
    await untilReady(relay.url);
    await relay.stop();
  },
);

test("The passwords are not in the environment of a node, and that of a replica is in a file of its own", async () => {
  const [node] = cluster.six;
  const pid = await node.pid();
  const places = await Promise.all(["cmdline", "environ"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")));
  expect(places[0]).toContain("redis-server");
  expect(places.join()).not.toContain(passwordOf(REPLICA));
  expect(places.join()).not.toContain("REDIS_PASSWORD");
  const replica = await stat(join(node.folder, `agent-relay-redis-${node.port}/replica.conf`));
  expect(replica.mode & 0o777).toBe(0o600);
});

test("A primary that dies and is started again at once leaves its place to its replica, which keeps what it had", async () => {
  const [primary, , , replica] = cluster.six;
  const relay = await startRelay({
    services: ["gateway"],
    environment: { RELAY_PARTITIONS: "12", REDIS_URL: cluster.urlFor("gateway") },
  });
  await untilReady(relay.url);
  await until("the replica has all", async () => (await keysOf(replica)) > 0);
  const { letStart, waits } = await cluster.holdStarts();
  process.kill(await primary.pid(), "SIGKILL");
  await primary.stop();
  const started = primary.start();
  await until("its replica takes over", async () => (await roleOf(replica)) === "master");
  expect(await waits()).toBe(START_WAIT_S);
  await letStart();
  await started;
  expect(await keysOf(replica)).toBeGreaterThan(0);
  expect(await cluster.create()).toMatchObject({ code: 0 });
  expect(await roleOf(primary)).toBe("slave");
  expect(await roleOf(replica)).toBe("master");
  await relay.stop();
});

test.each([
  ["one Redis", () => "redis://127.0.0.1:1"],
  ["fewer than six", () => cluster.urlFor(CREATOR, cluster.all.slice(0, 3))],
  ["an odd number", () => cluster.urlFor(CREATOR, [...cluster.all, ...cluster.all.slice(0, 1)])],
])("A Redis Cluster is not made of %s", async (_what, url) => {
  expect(await create(url())).toMatchObject({ code: 78, stderr: expect.stringContaining("REDIS_URL") });
});
