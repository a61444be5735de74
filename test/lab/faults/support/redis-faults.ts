import type { LinkName } from "../../../support/redis-proxy.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { until } from "../../../support/until.ts";
import type { Cluster, ClusterPod } from "./cluster.ts";
import { type Fault, over } from "./fault.ts";

/** Less than this waits in Redis for a pod that does not read, in the fault of that name. */
const OUTPUT_LIMIT = "pubsub 256kb 0 0";
const LARGE_MESSAGE = "x".repeat(30_000);
const LARGE_AT_ONCE = 20;

/** Faults of the bus: Redis itself, and the network between it and the pods. */
export const REDIS_FAULTS: readonly Fault[] = [
  {
    name: "Redis silent",
    times: 5,
    inject: async (cluster) => {
      await cluster.relay.redis.pause();
      await untilRefused(cluster, cluster.agents);
      await cluster.relay.redis.resume();
      return over(cluster.agents);
    },
  },
  {
    name: "Redis cut off",
    times: 5,
    inject: async (cluster) => {
      // What is on its way at that moment is lost with the links: so long the bus does not live.
      const alive = deaf(cluster, cluster.agents);
      for (const { redis } of cluster.connectors) redis.cut();
      alive();
      await untilRefused(cluster, cluster.agents);
      for (const { redis } of cluster.connectors) redis.heal();
      return over(cluster.agents);
    },
  },
  {
    name: "Redis slow, 100–400 ms",
    times: 3,
    inject: async (cluster) => {
      for (const { redis } of cluster.connectors) redis.slow(100, 400);
      await untilAnsweredSlowly(cluster);
      for (const { redis } of cluster.connectors) redis.heal();
      return over(cluster.agents);
    },
  },
  {
    name: "commands half-open",
    times: 5,
    inject: async (cluster) => {
      const pod = cluster.connectorFor(0);
      await cutSilently(pod, "ws-connector");
      const injected = over(cluster.agentsOf(pod));
      await untilRefused(cluster, injected.agents);
      return injected;
    },
  },
  {
    name: "channel half-open",
    times: 3,
    inject: async (cluster) => {
      const pod = cluster.connectorFor(0);
      const agents = cluster.agentsOf(pod);
      const alive = deaf(cluster, agents);
      await cutSilently(pod, "ws-connector-channel");
      const injected = over(agents);
      await until("the pod subscribed anew", () =>
        pod.redis.links("ws-connector-channel").some(({ isDead }) => !isDead),
      );
      await pod.untilReady();
      alive();
      return injected;
    },
  },
  {
    name: "reply lost, request carried out",
    times: 10,
    inject: async (cluster) => {
      const pod = cluster.connectorFor(0);
      await pod.redis.loseReplyTo('"message.send"');
      return over(cluster.agentsOf(pod));
    },
  },
  {
    name: "Redis restarted empty",
    times: 5,
    inject: async (cluster) => {
      const alive = deaf(cluster);
      await cluster.relay.redis.kill();
      cluster.ledger.guardLost();
      await untilRefused(cluster, cluster.agents);
      await cluster.relay.redis.start();
      alive();
      return over(cluster.agents);
    },
  },
  {
    name: "SCRIPT FLUSH",
    times: 10,
    inject: async (cluster) => {
      await cluster.view.client.script("FLUSH");
      return over(cluster.agents);
    },
  },
  {
    name: "channel killed",
    times: 5,
    inject: async (cluster) => {
      const pod = cluster.connectorFor(0);
      const agents = cluster.agentsOf(pod);
      const ports = pod.redis.links("ws-connector-channel").map(({ upstream }) => upstream.localPort);
      const alive = deaf(cluster, agents);
      for (const port of ports) await cluster.view.client.call("CLIENT", "KILL", "ADDR", `127.0.0.1:${port}`);
      alive();
      return over(agents);
    },
  },
  {
    name: "channel over its output limit",
    times: 3,
    inject: async (cluster) => {
      const { client } = cluster.view;
      const pod = cluster.connectorFor(0);
      const agents = cluster.agentsOf(pod);
      const limit = "client-output-buffer-limit";
      const [, before] = (await client.config("GET", limit)) as [string, string];
      await client.config("SET", limit, OUTPUT_LIMIT);
      const alive = deaf(cluster, agents);
      await overflow(cluster, pod, agents);
      await client.config("SET", limit, before);
      pod.redis.heal();
      await pod.untilReady();
      alive();
      return over(agents);
    },
  },
];

/** Deliveries to these agents, or to all, may be lost until the function that is returned is called. */
export function deaf(cluster: Cluster, agents?: readonly ReturningAgent[]): () => void {
  const gaps = agents === undefined ? [cluster.ledger.gap()] : agents.map(({ id }) => cluster.ledger.gap(id));
  return () => {
    for (const end of gaps) end();
  };
}

/** Resolves when each of these agents was refused with `unavailable`, since now. */
export async function untilRefused(cluster: Cluster, agents: readonly ReturningAgent[]): Promise<void> {
  const since = performance.now();
  const isRefused = ({ id }: ReturningAgent) =>
    cluster.ledger.content.entries.some(
      ({ from, attempts }) =>
        from === id &&
        attempts.some(({ at, answer }) => at > since && answer?.accepted === false && answer.code === "unavailable"),
    );
  await until("all are refused", () => agents.every(isRefused));
}

/** Resolves when each agent had an ack that took longer than Redis takes at its best. */
async function untilAnsweredSlowly(cluster: Cluster): Promise<void> {
  const since = performance.now();
  const isSlowed = ({ id }: ReturningAgent) =>
    cluster.ledger.content.entries.some(
      ({ from, attempts }) =>
        from === id && attempts.some(({ at, answer }) => at > since && answer?.accepted && answer.at - at >= 100),
    );
  await until("all are answered slowly", () => cluster.agents.every(isSlowed));
}

async function cutSilently(pod: ClusterPod, name: LinkName): Promise<void> {
  if (pod.redis.links(name).length === 0) throw new Error(`The pod has no link ${name}.`);
  pod.redis.halfOpen(name);
}

/** Large messages to a pod that does not read its channel, until Redis ends it. */
async function overflow(cluster: Cluster, pod: ClusterPod, targets: readonly ReturningAgent[]): Promise<void> {
  const said = () => cluster.relay.redis.output.split("output buffer limits").length;
  const before = said();
  const sender = cluster.agents.find((agent) => !targets.includes(agent)) as ReturningAgent;
  await until("Redis gives the channel up", () => {
    pod.redis.stall("ws-connector-channel");
    for (let n = 0; n < LARGE_AT_ONCE && sender.unsettled < 2 * LARGE_AT_ONCE; n += 1) {
      sender.send("message.send", { to: targets[n % targets.length]?.id, payload: { message: LARGE_MESSAGE } });
    }
    return said() > before;
  });
}
