import { CONTROL_SLOT } from "relay-window/redis/partitions.ts";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { until } from "../../support/until.ts";
import type { ClusterFleet } from "./support/cluster-stage.ts";
import { type Fault, type Injected, over } from "./support/fault.ts";
import { deaf } from "./redis.ts";
import { repeatAccepted, startReports, untilLacking, untilReported } from "./support/repeats.ts";
import { anySlot, forgets, shardOf, spared, untilRefusedTo } from "./support/shards.ts";
import { exchanging } from "./survive.ts";

const BACK_AFTER_PROMOTION_MS = 10_000;

/** What befalls the nodes of a Redis Cluster, and the network to them. */
export const NODE_FAULTS: readonly Fault<ClusterFleet>[] = [
  {
    name: "primary SIGKILL, its replica promoted",
    times: 3,
    inject: (fleet) => promoted(fleet, (primary) => fleet.stage.cluster.kill(primary)),
  },
  {
    name: "primary SIGSTOP, its replica promoted, SIGCONT",
    times: 3,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary } = await shardOf(fleet, anySlot(fleet));
      const injected = await promoted(fleet, () => cluster.pause(primary));
      await cluster.resume(primary);
      await until("the former primary is a replica", async () =>
        (await primary.ask("INFO replication")).includes("role:slave"),
      );
      await exchanging(fleet, fleet.agents, performance.now(), BACK_AFTER_PROMOTION_MS);
      return injected;
    },
  },
  {
    name: "CLUSTER FAILOVER",
    times: 4,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary, agents } = await shardOf(fleet, anySlot(fleet));
      const askedAt = performance.now();
      await cluster.failOver(await cluster.replicaOf(primary));
      const injected = over(agents);
      const back = exchanging(fleet, agents, injected.endedAt, BACK_AFTER_PROMOTION_MS);
      const [backAt] = await Promise.all([back, repeatAccepted(fleet, agents, askedAt)]);
      return { ...injected, backAt };
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

/**
 * A primary is made silent until its replica has taken its place, which lacks what was accepted last. That is accepted again and reported
 * as lacking, and nothing else.
 */
async function promoted(
  fleet: ClusterFleet,
  silence: (primary: ClusterNode) => Promise<void>,
): Promise<Injected & { readonly backAt: number }> {
  const { cluster } = fleet.stage;
  const { primary, agents } = await shardOf(fleet, anySlot(fleet));
  const replica = await cluster.replicaOf(primary);
  const reports = await startReports(fleet);
  try {
    const lagsSince = performance.now();
    await cluster.beginLag(primary, replica);
    await untilLacking(fleet, agents, performance.now());
    const alive = deaf(fleet, agents);
    const silentSince = performance.now();
    await silence(primary);
    forgets(fleet, agents, lagsSince);
    await cluster.resume(replica);
    await cluster.letTakeOver(replica);
    await spared(fleet, agents, () => cluster.untilPrimary(replica));
    alive();
    const injected = over(agents);
    const back = exchanging(fleet, agents, injected.endedAt, BACK_AFTER_PROMOTION_MS);
    const [backAt, repeated] = await Promise.all([back, repeatAccepted(fleet, agents, silentSince)]);
    await untilReported(fleet, reports, agents, repeated);
    return { ...injected, backAt };
  } finally {
    await reports.end("SIGTERM");
  }
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
