import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { EmbeddedCluster } from "../../deploy/local/embedded-cluster.ts";
import { watchLeaks } from "../support/until.ts";

const noLeaks = watchLeaks();
const cluster = new EmbeddedCluster();

beforeAll(() => cluster.start());
afterAll(async () => {
  await cluster.stop();
  await noLeaks();
});

test("the embedded Redis Cluster has three primaries and a replica of each, and serves all slots", async () => {
  const said = await Promise.all(cluster.nodes.map((node) => node.ask("CLUSTER INFO", "ROLE")));
  expect(said.map((one) => /cluster_slots_ok:(\d+)/.exec(one)?.[1])).toEqual(Array(6).fill("16384"));
  expect(said.map((one) => /\b(?:master|slave)\b/.exec(one)?.[0])).toEqual([
    ...Array(3).fill("master"),
    ...Array(3).fill("slave"),
  ]);
});

test("a node refuses a question that Redis refuses, and names it", async () => {
  await expect(cluster.nodes[0]?.ask("CLUSTER MEET nowhere 0")).rejects.toThrow(/CLUSTER MEET nowhere/);
});

test("it keeps nothing on disk, does not evict, and goes on without the slots that it lacks", async () => {
  for (const node of cluster.nodes) {
    const said = await node.ask(
      ...["save", "appendonly", "maxmemory-policy", "cluster-require-full-coverage"].map(
        (name) => `CONFIG GET ${name}`,
      ),
    );
    expect(said.match(/^(?:no|noeviction)\r$/gm)).toEqual(["no\r", "noeviction\r", "no\r"]);
  }
});

test("it leaves neither a process nor a folder after stop, which may be called again", async () => {
  const folders = cluster.nodes.map(({ folder }) => folder);
  await Promise.all([cluster.stop(), cluster.stop()]);
  expect(folders.filter((folder) => existsSync(folder))).toEqual([]);
});
