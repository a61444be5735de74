import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { until } from "../../../support/until.ts";
import type { ClusterFleet } from "./cluster-stage.ts";
import { type Fault, over } from "./fault.ts";
import { sendUntilAccepted } from "../../keyed-sends.ts";
import { deaf } from "../redis.ts";
import { anySlot, forgets, shardOf } from "./shards.ts";

const CALLERS = 4;

/** Callers send what has its target in one shard over two gateways, in turn, and say the same again until it is accepted, and once more. */
export const GATEWAY_FAILOVER: Fault<ClusterFleet> = {
  name: "gateways retry one Idempotency-Key through a failover",
  times: 2,
  inject: async (fleet) => {
    const { cluster } = fleet.stage;
    const gateways = await Promise.all([fleet.addPod("gateway"), fleet.addPod("gateway")]);
    const { primary, agents } = await shardOf(fleet, anySlot(fleet));
    const replica = await cluster.replicaOf(primary);
    /** When each caller was served last. */
    const servedAt: number[] = Array(CALLERS).fill(0);
    let isOver = false;
    let requests = 0;
    const calls = servedAt.map(async (_, caller) => {
      const to = agents[caller % agents.length] as ReturningAgent;
      const others = fleet.agents.filter((agent) => agent !== to);
      while (!isOver) {
        requests += 1;
        const from = others[requests % others.length] as ReturningAgent;
        await sendUntilAccepted(fleet, { from, to, first: caller }, () => gateways, { andAgain: true });
        servedAt[caller] = performance.now();
      }
    });
    const allServed = async (since: number) => {
      const served = until("callers are served", () => servedAt.every((at) => at > since));
      await Promise.race([served, Promise.all(calls)]);
    };
    try {
      await allServed(0);
      const alive = deaf(fleet, agents);
      const since = performance.now();
      await cluster.untilReceived(primary, replica);
      await cluster.letTakeOver(replica);
      await cluster.kill(primary);
      forgets(fleet, agents, since);
      await cluster.untilPrimary(replica);
      alive();
      const injected = over(agents);
      await allServed(injected.endedAt);
      return { ...injected, backAt: Math.max(...servedAt) };
    } finally {
      isOver = true;
      await Promise.allSettled(calls);
      await Promise.all(gateways.map((gateway) => gateway.end("SIGTERM")));
    }
  },
};
