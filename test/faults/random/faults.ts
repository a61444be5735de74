import { setTimeout as delay } from "node:timers/promises";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import type { Act } from "./actions.ts";
import type { Stage } from "./stage.ts";

export type Fault = Extract<Act, { act: "hangRedis" | "restartRedis" | "cut" | "slow" | "freeze" | "kill" | "term" }>;

/** For so long Redis may not know that a connection has ended. */
const NOTICED_MS = 100;

export function isFault(act: Act): act is Fault {
  return ["hangRedis", "restartRedis", "cut", "slow", "freeze", "kill", "term"].includes(act.act);
}

/** Begins a fault, and resolves when it is over. */
export async function strike(stage: Stage, fault: Fault): Promise<void> {
  switch (fault.act) {
    case "hangRedis":
      await stage.relay.redis.pause();
      await delay(fault.forMs);
      await stage.relay.redis.resume();
      return;
    case "restartRedis":
      return await restartRedis(stage);
    case "kill":
      return await kill(stage, fault.connector);
    case "term":
      return await terminate(stage, fault.connector);
    case "freeze": {
      const { process } = podOf(stage, fault.connector);
      process.freeze();
      await delay(fault.forMs);
      process.thaw();
      return;
    }
    case "slow": {
      const { redis } = podOf(stage, fault.connector);
      redis.slow(20, 200);
      await delay(fault.forMs);
      redis.heal();
      return;
    }
    case "cut":
      return await cut(stage, fault.connector, fault.forMs);
  }
}

async function restartRedis(stage: Stage): Promise<void> {
  const alive = stage.ledger.gap();
  await stage.relay.redis.kill();
  stage.ledger.guardLost();
  await delay(NOTICED_MS);
  await stage.relay.redis.start();
  alive();
}

/** What was on its way through the pod's channel when it was cut is lost. */
async function cut(stage: Stage, connector: number, forMs: number): Promise<void> {
  const pod = podOf(stage, connector);
  const alive = deaf(stage, reachedBy(stage, pod.websocketUrl));
  pod.redis.cut();
  await delay(forMs);
  pod.redis.heal();
  alive();
}

async function kill(stage: Stage, connector: number): Promise<void> {
  const victim = podOf(stage, connector);
  await stage.replace(victim);
  const alive = deaf(stage, reachedBy(stage, victim.websocketUrl));
  await victim.end("SIGKILL");
  await until("the links of the dead are gone", () => victim.redis.links().length === 0);
  await delay(NOTICED_MS);
  alive();
}

async function terminate(stage: Stage, connector: number): Promise<void> {
  const victim = podOf(stage, connector);
  await stage.replace(victim);
  const code = await victim.end("SIGTERM");
  if (code !== 0) throw new Error(`A connector that was told to end ended with ${code}.`);
}

function podOf(stage: Stage, connector: number) {
  const pod = stage.connectors[connector];
  if (pod === undefined) throw new Error(`There is no connector ${connector}.`);
  return pod;
}

/** Agents with a connection to a connector, one that they just leave included. */
function reachedBy(stage: Stage, url: string): ReturningAgent[] {
  return stage.agents.filter((agent) => agent.url === url || !agent.isOnline || stage.hasJustMoved(agent));
}

function deaf(stage: Stage, agents: readonly ReturningAgent[]): () => void {
  const gaps = agents.map(({ id }) => stage.ledger.gap(id));
  return () => {
    for (const end of gaps) end();
  };
}
