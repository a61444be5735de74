import { expect, test } from "@jest/globals";
import { GuardedCluster } from "../../../test/support/guarded-cluster.ts";
import type { RedisUser } from "../../../test/support/test-redis.ts";
import { Counters } from "../src/counters.ts";
import { addFeedback } from "../src/feedback.ts";
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
async function keysOf(startedAt: number): Promise<string[][]> {
  const said = await Promise.all((await bench.primaries()).map((node) => node.ask("KEYS relay:*")));
  const ending = `:${startedAt.toString(36)}`;
  return said.map((names) =>
    [...names.matchAll(/^relay:\S+/gm)].map(([name]) => name).filter((n) => n.includes(ending)),
  );
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

test("What a reset could not delete while a shard was away, the next one deletes", async () => {
  const options = { partitions: PARTITIONS, deployId: "deploy-2", force: false };
  const admin = await bench.started("window-reset", cluster.urlFor("window-reset"));
  await fill();
  const { window } = await podAs("ws-connector");
  const { startedAt: old } = await window.adoptOpenWindow();
  const link = admin.links[0] as (typeof admin.links)[0];
  const { command } = link;
  link.command = async (name, ...args) => {
    if (name === "UNLINK") throw new Error("away");
    return await command.call(link, name, ...args);
  };
  await expect(resetWindow(admin, options)).rejects.toThrow("away");
  expect((await keysOf(old)).flat()).not.toEqual([]);
  link.command = command;
  expect(await resetWindow(admin, options)).toMatchObject({ outcome: "kept" });
  expect((await keysOf(old)).flat()).toEqual([]);
});
