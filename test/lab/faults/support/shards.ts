import type { ClusterNode } from "../../../../deploy/local/cluster-node.ts";
import type { Answer } from "../../../support/ledger.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { until } from "../../../support/until.ts";
import { type ClusterFleet, slotOfAgent } from "./cluster-stage.ts";

/** A shard of the cluster, and what becomes of what is for its agents. */

export interface Shard {
  readonly primary: ClusterNode;
  /** Whose partitions it has. */
  readonly agents: readonly ReturningAgent[];
}

/** The shard that has a slot. */
export async function shardOf(fleet: ClusterFleet, slot: number): Promise<Shard> {
  const { cluster } = fleet.stage;
  const primary = await cluster.primaryOf(slot);
  const primaries = await Promise.all(fleet.agents.map(({ id }) => cluster.primaryOf(slotOfAgent(id))));
  return { primary, agents: fleet.agents.filter((_, n) => primaries[n] === primary) };
}

/** A slot of agents, in another shard than the control slot. */
export function anySlot({ agents }: ClusterFleet): number {
  return slotOfAgent((agents[0] as ReturningAgent).id);
}

/** The guard of these agents' partitions has lost what was not replicated yet, accepted since then, or everything. */
export function forgets(fleet: ClusterFleet, agents: readonly ReturningAgent[], since?: number): void {
  fleet.ledger.guardLost(
    agents.map(({ id }) => id),
    since,
  );
}

/** Resolves when envelopes to each of these agents were refused with `unavailable`, since now. */
export async function untilRefusedTo(fleet: ClusterFleet, agents: readonly ReturningAgent[]): Promise<void> {
  const since = performance.now();
  await until("what is for them is refused", () => {
    const refused = answeredSince(fleet, since, (answer) => !answer.accepted && answer.code === "unavailable");
    return agents.every(({ id }) => refused.has(id));
  });
}

/** Lets a fault come, and resolves when all others were served meanwhile: only what lies in the shard may be refused. */
export async function spared(
  fleet: ClusterFleet,
  touched: readonly ReturningAgent[],
  fault: () => Promise<unknown>,
): Promise<void> {
  const since = performance.now();
  const others = fleet.agents.filter((agent) => !touched.includes(agent));
  const areServed = () => {
    const served = answeredSince(fleet, since, ({ accepted }) => accepted);
    return others.every(({ id }) => served.has(id));
  };
  await Promise.all([fault(), until("others are served meanwhile", areServed)]);
}

/** For whom envelopes were, sent since then, with such an answer. */
function answeredSince({ ledger }: ClusterFleet, since: number, holds: (answer: Answer) => boolean): Set<string> {
  const entries = ledger.content.entries.filter(({ attempts }) =>
    attempts.some(({ at, answer }) => at > since && answer !== undefined && holds(answer)),
  );
  return new Set(entries.flatMap(({ to }) => to ?? []));
}
