import { setTimeout as delay } from "node:timers/promises";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import type { Act } from "./actions.ts";
import type { RoamingCluster } from "./roaming-cluster.ts";

export type Fault = Extract<Act, { act: "hangRedis" | "restartRedis" | "cut" | "slow" | "freeze" | "kill" | "term" }>;

/** For so long Redis may not know that a connection has ended. */
const NOTICED_MS = 100;

export function isFault(act: Act): act is Fault {
  return ["hangRedis", "restartRedis", "cut", "slow", "freeze", "kill", "term"].includes(act.act);
}

/** Begins a fault, and resolves when it is over. */
export async function inject(cluster: RoamingCluster, fault: Fault): Promise<void> {
  switch (fault.act) {
    case "hangRedis":
      await cluster.relay.redis.pause();
      await delay(fault.forMs);
      await cluster.relay.redis.resume();
      return;
    case "restartRedis":
      return await restartRedis(cluster);
    case "kill":
      return await kill(cluster, fault.connector);
    case "term":
      return await terminate(cluster, fault.connector);
    case "freeze": {
      const { process } = podOf(cluster, fault.connector);
      process.freeze();
      await delay(fault.forMs);
      process.thaw();
      return;
    }
    case "slow": {
      const { redis } = podOf(cluster, fault.connector);
      redis.slow(20, 200);
      await delay(fault.forMs);
      redis.heal();
      return;
    }
    case "cut":
      return await cut(cluster, fault.connector, fault.forMs);
  }
}

async function restartRedis(cluster: RoamingCluster): Promise<void> {
  const alive = cluster.ledger.gap();
  await cluster.relay.redis.kill();
  cluster.ledger.guardLost();
  await delay(NOTICED_MS);
  await cluster.relay.redis.start();
  alive();
}

/** What was on its way through the pod's channel when it was cut is lost. */
async function cut(cluster: RoamingCluster, connector: number, forMs: number): Promise<void> {
  const pod = podOf(cluster, connector);
  const alive = gapFor(cluster, reachedBy(cluster, pod.websocketUrl));
  pod.redis.cut();
  await delay(forMs);
  pod.redis.heal();
  alive();
}

async function kill(cluster: RoamingCluster, connector: number): Promise<void> {
  const doomed = podOf(cluster, connector);
  await cluster.replace(doomed);
  const alive = gapFor(cluster, reachedBy(cluster, doomed.websocketUrl));
  await doomed.end("SIGKILL");
  await until("the links of the dead are gone", () => doomed.redis.links().length === 0);
  await delay(NOTICED_MS);
  alive();
}

async function terminate(cluster: RoamingCluster, connector: number): Promise<void> {
  const doomed = podOf(cluster, connector);
  await cluster.replace(doomed);
  const code = await doomed.end("SIGTERM");
  if (code !== 0) throw new Error(`A connector that was told to end ended with ${code}.`);
}

function podOf(cluster: RoamingCluster, connector: number) {
  const pod = cluster.connectors[connector];
  if (pod === undefined) throw new Error(`There is no connector ${connector}.`);
  return pod;
}

/** Agents with a connection to a connector, one that they just leave included. */
function reachedBy(cluster: RoamingCluster, url: string): ReturningAgent[] {
  return cluster.agents.filter((agent) => agent.url === url || !agent.isOnline || cluster.hasJustMoved(agent));
}

function gapFor(cluster: RoamingCluster, agents: readonly ReturningAgent[]): () => void {
  const gaps = agents.map(({ id }) => cluster.ledger.gap(id));
  return () => {
    for (const end of gaps) end();
  };
}
