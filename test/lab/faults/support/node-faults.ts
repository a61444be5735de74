import { CONTROL_SLOT } from "window/redis/partitions.ts";
import type { ClusterNode } from "../../../../deploy/local/cluster-node.ts";
import { until } from "../../../support/until.ts";
import type { ClusterFleet } from "./cluster-stage.ts";
import { type Fault, type Injected, over } from "./fault.ts";
import { deaf } from "./redis-faults.ts";
import { anySlot, forgets, type Shard, shardOf, spared, untilRefusedTo } from "./shards.ts";
import { exchanging } from "./survive.ts";

const BACK_AFTER_PROMOTION_MS = 10_000;

/** What befalls the nodes of a Redis Cluster, and the network to them. */
export const NODE_FAULTS: readonly Fault<ClusterFleet>[] = [
  {
    name: "primary SIGKILL, its replica promoted",
    times: 3,
    inject: async (fleet) => {
      const { agents } = await promoted(fleet, (primary) => fleet.stage.cluster.kill(primary));
      return over(agents);
    },
  },
  {
    name: "primary SIGSTOP, its replica promoted, SIGCONT",
    times: 3,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary, agents } = await promoted(fleet, (silent) => cluster.pause(silent));
      const injected = over(agents);
      const backAt = await exchanging(fleet, agents, injected.endedAt, BACK_AFTER_PROMOTION_MS);
      await cluster.resume(primary);
      await until("the former primary is a replica", async () =>
        (await primary.ask("INFO replication")).includes("role:slave"),
      );
      await exchanging(fleet, fleet.agents, performance.now(), BACK_AFTER_PROMOTION_MS);
      return { ...injected, backAt };
    },
  },
  {
    name: "CLUSTER FAILOVER",
    times: 4,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary, agents } = await shardOf(fleet, anySlot(fleet));
      await cluster.failOver(await cluster.replicaOf(primary));
      return over(agents);
    },
  },
  {
    name: "replica lost",
    times: 2,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary } = await shardOf(fleet, anySlot(fleet));
      const replica = await cluster.replicaOf(primary);
      await cluster.kill(replica);
      await spared(fleet, [], () => cluster.untilGivenUp(replica));
      return over([]);
    },
  },
  {
    name: "shard lost with its replica, back empty",
    times: 3,
    inject: (fleet) => loseShard(fleet, anySlot(fleet)),
  },
  {
    name: "control slot lost with its shard, back empty",
    times: 3,
    inject: (fleet) => loseShard(fleet, CONTROL_SLOT),
  },
  {
    name: "network between pods and a shard cut",
    times: 4,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary, agents } = await shardOf(fleet, anySlot(fleet));
      const replica = await cluster.replicaOf(primary);
      const proxies = [primary, replica].flatMap((node) => fleet.stage.networkTo(node, fleet));
      // What is on its way at that moment is lost with the links: so long the shard does not live.
      const alive = deaf(fleet, agents);
      for (const proxy of proxies) proxy.cut();
      alive();
      await spared(fleet, agents, () => untilRefusedTo(fleet, agents));
      for (const proxy of proxies) proxy.heal();
      return over(agents);
    },
  },
  {
    name: "SCRIPT FLUSH on one node",
    times: 5,
    inject: async (fleet) => {
      const { primary, agents } = await shardOf(fleet, anySlot(fleet));
      await primary.ask("SCRIPT FLUSH");
      return over(agents);
    },
  },
];

/** A primary is made silent until its replica has taken its place. */
async function promoted(fleet: ClusterFleet, silence: (primary: ClusterNode) => Promise<void>): Promise<Shard> {
  const { cluster } = fleet.stage;
  const shard = await shardOf(fleet, anySlot(fleet));
  const replica = await cluster.replicaOf(shard.primary);
  const alive = deaf(fleet, shard.agents);
  await silence(shard.primary);
  forgets(fleet, shard.agents);
  await spared(fleet, shard.agents, () => cluster.untilPrimary(replica));
  alive();
  return shard;
}

/** The shard dies and comes back empty. */
async function loseShard(fleet: ClusterFleet, slot: number): Promise<Injected> {
  const { cluster } = fleet.stage;
  const { primary, agents } = await shardOf(fleet, slot);
  const alive = deaf(fleet, agents);
  await cluster.kill(await cluster.replicaOf(primary));
  await cluster.kill(primary);
  forgets(fleet, agents);
  await spared(fleet, agents, async () => {
    await cluster.untilGivenUp(primary);
    await untilRefusedTo(fleet, agents);
  });
  await cluster.mend();
  alive();
  return over(agents);
}
