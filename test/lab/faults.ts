import { setTimeout as delay } from "node:timers/promises";
import { violations } from "../support/ledger.ts";
import type { ReturningAgent } from "../support/returning-agent.ts";
import { until } from "../support/until.ts";
import { ClusterStage } from "./faults/support/cluster-stage.ts";
import { SingleStage } from "./faults/support/single-stage.ts";
import type { Act } from "./random/actions.ts";
import { type ClusterFault, injectIntoCluster, isClusterFault } from "./random/cluster-faults.ts";
import { injectIntoRedis, isRedisFault, type RedisFault } from "./random/redis-faults.ts";
import type { RoamingFleet } from "./random/roaming-fleet.ts";

type PodFault = Extract<Act, { act: "cut" | "slow" | "freeze" | "kill" | "term" }>;
export type Fault = PodFault | RedisFault | ClusterFault;

const POD_FAULTS: readonly string[] = ["cut", "slow", "freeze", "kill", "term"] satisfies PodFault["act"][];

export function isFault(act: Act): act is Fault {
  return isPodFault(act) || isRedisFault(act) || isClusterFault(act);
}

/** Begins a fault, and resolves when it is over. */
export async function inject(fleet: RoamingFleet, fault: Fault): Promise<void> {
  const { stage } = fleet;
  if (isPodFault(fault)) return await injectIntoPod(fleet, fault);
  if (isRedisFault(fault) && stage instanceof SingleStage) return await injectIntoRedis(fleet, stage, fault);
  if (isClusterFault(fault) && stage instanceof ClusterStage) return await injectIntoCluster(fleet, stage, fault);
  throw new Error(`Not a fault of this stage: ${fault.act}`);
}

function isPodFault(act: Act): act is PodFault {
  return POD_FAULTS.includes(act.act);
}

async function injectIntoPod(fleet: RoamingFleet, fault: PodFault): Promise<void> {
  switch (fault.act) {
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
      const { proxies } = podOf(fleet, fault.connector);
      for (const proxy of proxies) proxy.slow(20, 200);
      await delay(fault.forMs);
      for (const proxy of proxies) proxy.heal();
      return;
    }
    case "cut":
      return await cut(fleet, fault.connector, fault.forMs);
  }
}

/**
 * What was on its way through the pod's channel when it was cut is lost, and so is what Redis publishes to it before it comes to
 * the end of the connection.
 */
async function cut(fleet: RoamingFleet, connector: number, forMs: number): Promise<void> {
  const pod = podOf(fleet, connector);
  const alive = await gapFor(fleet, reachedBy(fleet, pod.websocketUrl));
  for (const proxy of pod.proxies) proxy.cut();
  await Promise.all([delay(forMs), fleet.stage.caughtUp()]);
  for (const proxy of pod.proxies) proxy.heal();
  alive();
}

async function kill(fleet: RoamingFleet, connector: number): Promise<void> {
  const doomed = podOf(fleet, connector);
  await fleet.replace(doomed);
  const alive = await gapFor(fleet, reachedBy(fleet, doomed.websocketUrl));
  await doomed.end("SIGKILL");
  await until("the links of the dead are gone", () => doomed.proxies.every((proxy) => proxy.links().length === 0));
  await fleet.stage.caughtUp();
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

/**
 * A gap of these agents, which begins now; resolves when all that was promised to them before has come, however far a pod is
 * behind on a busy machine. What does not come in time is judged in the end.
 */
async function gapFor({ ledger }: RoamingFleet, agents: readonly ReturningAgent[]): Promise<() => void> {
  const ids = new Set(agents.map(({ id }) => id));
  const onTheirWay = violations(ledger.content)
    .filter(({ kind }) => kind === "promised and lost")
    .flatMap(({ id }) => ledger.entry(id) ?? [])
    .filter(({ to }) => to !== undefined && ids.has(to));
  const gaps = agents.map(({ id }) => ledger.gap(id));
  const haveCome = () => onTheirWay.every(({ deliveries }) => deliveries.length > 0);
  await until("what was promised before has come", haveCome).catch(() => {});
  return () => {
    for (const end of gaps) end();
  };
}
