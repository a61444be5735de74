import type { ClusterNode } from "../../../../deploy/local/cluster-node.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { type ClusterFleet, slotOfAgent } from "./cluster-stage.ts";
import { type Fault, over } from "./fault.ts";
import { anySlot, shardOf, untilRefusedTo } from "./shards.ts";
import { exchanging } from "../survive.ts";

/** A slot of each of the first shards. */
const ONE_OF_EACH = [0, 8000, 16_383];
/** Source: docs/redis.md#a-redis-cluster. */
const SERVED_WITHIN_MS = 2000;
const BACK_WITHIN_MS = 10_000;

/** Slots that go to other primaries, by a move of Redis 7: key by key. */
export const MOVING_FAULTS: readonly Fault<ClusterFleet>[] = [
  {
    name: "slot moved, to and fro",
    times: 4,
    backWithinMs: SERVED_WITHIN_MS,
    inject: async (fleet) => {
      const slot = anySlot(fleet);
      const { primary } = await shardOf(fleet, slot);
      const others = await fleet.stage.cluster.primaries();
      const to = others.find((node) => node !== primary) as ClusterNode;
      const agents = agentsIn(fleet, slot);
      await moveUnderTraffic(fleet, slot, to);
      return over(agents);
    },
  },
  {
    name: "primary added and removed",
    times: 2,
    backWithinMs: SERVED_WITHIN_MS,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const slots = await Promise.all(ONE_OF_EACH.map((one) => slotBeside(fleet, one)));
      const homes = await Promise.all(slots.map((slot) => cluster.primaryOf(slot)));
      const agents = slots.flatMap((slot) => agentsIn(fleet, slot));
      const added = await cluster.addNode();
      for (const slot of slots) await moveUnderTraffic(fleet, slot, added);
      await exchanging(fleet, agents, performance.now(), BACK_WITHIN_MS);
      for (const [n, slot] of slots.entries()) await moveUnderTraffic(fleet, slot, homes[n] as ClusterNode);
      const injected = over(agents);
      await cluster.removeNode(added);
      return injected;
    },
  },
];

/** Some keys are here and some there for long enough that what is for the slot's agents is refused. */
async function moveUnderTraffic(fleet: ClusterFleet, slot: number, to: ClusterNode): Promise<void> {
  const { cluster } = fleet.stage;
  const from = await cluster.beginMove(slot, to);
  await cluster.moveKeys(slot, from, to);
  await untilRefusedTo(fleet, agentsIn(fleet, slot));
  await cluster.endMove(slot, from, to);
}

/** A slot of agents in the shard that has that one. */
async function slotBeside(fleet: ClusterFleet, slot: number): Promise<number> {
  const { agents } = await shardOf(fleet, slot);
  return slotOfAgent((agents[0] as ReturningAgent).id);
}

function agentsIn({ agents }: ClusterFleet, slot: number): ReturningAgent[] {
  return agents.filter(({ id }) => slotOfAgent(id) === slot);
}
