import { setTimeout as delay } from "node:timers/promises";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import type { Act } from "./actions.ts";
import type { RoamingFleet } from "./roaming-fleet.ts";

export type Fault = Extract<Act, { act: "hangRedis" | "restartRedis" | "cut" | "slow" | "freeze" | "kill" | "term" }>;

/** For so long Redis may not know that a connection has ended. */
const NOTICED_MS = 100;

export function isFault(act: Act): act is Fault {
  return ["hangRedis", "restartRedis", "cut", "slow", "freeze", "kill", "term"].includes(act.act);
}

/** Begins a fault, and resolves when it is over. */
export async function inject(fleet: RoamingFleet, fault: Fault): Promise<void> {
  switch (fault.act) {
    case "hangRedis":
      await fleet.relay.redis.pause();
      await delay(fault.forMs);
      await fleet.relay.redis.resume();
      return;
    case "restartRedis":
      return await restartRedis(fleet);
    case "kill":
      return await kill(fleet, fault.connector);
    case "term":
      return await terminate(fleet, fault.connector);
    case "freeze": {
      const { process } = podOf(fleet, fault.connector);
      process.freeze();
      await delay(fault.forMs);
      process.thaw();
      return;
    }
    case "slow": {
      const { redis } = podOf(fleet, fault.connector);
      redis.slow(20, 200);
      await delay(fault.forMs);
      redis.heal();
      return;
    }
    case "cut":
      return await cut(fleet, fault.connector, fault.forMs);
  }
}

async function restartRedis(fleet: RoamingFleet): Promise<void> {
  const alive = fleet.ledger.gap();
  await fleet.relay.redis.kill();
  fleet.ledger.guardLost();
  await delay(NOTICED_MS);
  await fleet.relay.redis.start();
  alive();
}

/** What was on its way through the pod's channel when it was cut is lost. */
async function cut(fleet: RoamingFleet, connector: number, forMs: number): Promise<void> {
  const pod = podOf(fleet, connector);
  const alive = gapFor(fleet, reachedBy(fleet, pod.websocketUrl));
  pod.redis.cut();
  await delay(forMs);
  pod.redis.heal();
  alive();
}

async function kill(fleet: RoamingFleet, connector: number): Promise<void> {
  const doomed = podOf(fleet, connector);
  await fleet.replace(doomed);
  const alive = gapFor(fleet, reachedBy(fleet, doomed.websocketUrl));
  await doomed.end("SIGKILL");
  await until("the links of the dead are gone", () => doomed.redis.links().length === 0);
  await delay(NOTICED_MS);
  alive();
}

async function terminate(fleet: RoamingFleet, connector: number): Promise<void> {
  const doomed = podOf(fleet, connector);
  await fleet.replace(doomed);
  const code = await doomed.end("SIGTERM");
  if (code !== 0) throw new Error(`A connector that was told to end ended with ${code}.`);
}

function podOf(fleet: RoamingFleet, connector: number) {
  const pod = fleet.connectors[connector];
  if (pod === undefined) throw new Error(`There is no connector ${connector}.`);
  return pod;
}

/** Agents with a connection to a connector, one that they just leave included. */
function reachedBy(fleet: RoamingFleet, url: string): ReturningAgent[] {
  return fleet.agents.filter((agent) => agent.url === url || !agent.isOnline || fleet.hasJustMoved(agent));
}

function gapFor(fleet: RoamingFleet, agents: readonly ReturningAgent[]): () => void {
  const gaps = agents.map(({ id }) => fleet.ledger.gap(id));
  return () => {
    for (const end of gaps) end();
  };
}
