import { setTimeout as delay } from "node:timers/promises";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { type ClusterStage, slotOfAgent } from "../faults/support/cluster-stage.ts";
import type { Act } from "./actions.ts";
import type { RoamingFleet } from "./roaming-fleet.ts";

export type ClusterFault = Extract<Act, { act: "hangPrimary" | "failOver" | "moveSlot" | "killPrimary" | "loseShard" }>;

const NAMES: readonly string[] = [
  "hangPrimary",
  "failOver",
  "moveSlot",
  "killPrimary",
  "loseShard",
] satisfies ClusterFault["act"][];

export function isClusterFault(act: Act): act is ClusterFault {
  return NAMES.includes(act.act);
}

/** Begins a fault of a Redis Cluster, and resolves when it is over. */
export async function injectIntoCluster(fleet: RoamingFleet, stage: ClusterStage, fault: ClusterFault): Promise<void> {
  const { cluster } = stage;
  const slot = slotOfAgent(fleet.agents[fault.agent]?.id as string);
  const primary = await cluster.primaryOf(slot);
  switch (fault.act) {
    case "hangPrimary":
      await cluster.pause(primary);
      await delay(fault.forMs);
      await cluster.resume(primary);
      return;
    case "failOver":
      return await cluster.failOver(await cluster.replicaOf(primary));
    case "moveSlot": {
      const others = await cluster.primaries();
      return await cluster.moveSlot(slot, others.find((node) => node !== primary) as ClusterNode);
    }
    case "killPrimary": {
      const replica = await cluster.replicaOf(primary);
      await cluster.letTakeOver(replica);
      return await losing(fleet, stage, primary, async () => {
        await cluster.kill(primary);
        return () => cluster.untilPrimary(replica);
      });
    }
    case "loseShard":
      return await losing(fleet, stage, primary, async () => {
        await cluster.kill(await cluster.replicaOf(primary));
        await cluster.kill(primary);
        return () => cluster.untilGivenUp(primary);
      });
  }
}

/** The shard dies and comes back; it has forgotten what was not replicated, or everything. @param fail resolves when it is dead. */
async function losing(
  { agents, ledger }: RoamingFleet,
  stage: ClusterStage,
  primary: ClusterNode,
  fail: () => Promise<() => Promise<void>>,
): Promise<void> {
  const { cluster } = stage;
  const primaries = await Promise.all(agents.map(({ id }) => cluster.primaryOf(slotOfAgent(id))));
  const touched = agents.filter((_, n) => primaries[n] === primary).map(({ id }) => id);
  const gaps = touched.map((id) => ledger.gap(id));
  const over = await fail();
  ledger.guardLost(touched);
  await over();
  await cluster.mend();
  for (const end of gaps) end();
}
