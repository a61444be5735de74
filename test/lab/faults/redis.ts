import type { LinkName } from "../../support/redis-proxy.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import { type Fault, over } from "./support/fault.ts";
import type { Fleet, FleetPod } from "../fleet.ts";
import type { SingleFleet } from "./support/single-stage.ts";

/** Less than this waits in Redis for a pod that does not read, in the fault of that name. */
const OUTPUT_LIMIT = "pubsub 256kb 0 0";
const LARGE_MESSAGE = "x".repeat(30_000);
const LARGE_AT_ONCE = 20;

/** Faults of the bus: Redis itself, and the network between it and the pods. */
export const REDIS_FAULTS: readonly Fault<SingleFleet>[] = [
  {
    name: "Redis silent",
    times: 5,
    inject: async (fleet) => {
      await fleet.relay.redis.pause();
      await untilRefused(fleet, fleet.agents);
      await fleet.relay.redis.resume();
      return over(fleet.agents);
    },
  },
  {
    name: "Redis cut off",
    times: 5,
    inject: async (fleet) => {
      // What is on its way at that moment is lost with the links: so long the bus does not live.
      const alive = deaf(fleet, fleet.agents);
      for (const { redis } of fleet.connectors) redis.cut();
      alive();
      await untilRefused(fleet, fleet.agents);
      for (const { redis } of fleet.connectors) redis.heal();
      return over(fleet.agents);
    },
  },
  {
    name: "Redis slow, 100–400 ms",
    times: 3,
    inject: async (fleet) => {
      for (const { redis } of fleet.connectors) redis.slow(100, 400);
      await untilAnsweredSlowly(fleet);
      for (const { redis } of fleet.connectors) redis.heal();
      return over(fleet.agents);
    },
  },
  {
    name: "commands half-open",
    times: 5,
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      await cutSilently(pod, "ws-connector");
      const injected = over(fleet.agentsOf(pod));
      await untilRefused(fleet, injected.agents);
      return injected;
    },
  },
  {
    name: "channel half-open",
    times: 3,
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      const agents = fleet.agentsOf(pod);
      const alive = deaf(fleet, agents);
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
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      await pod.redis.loseReplyTo('"message.send"');
      return over(fleet.agentsOf(pod));
    },
  },
  {
    name: "Redis restarted empty",
    times: 5,
    inject: async (fleet) => {
      const alive = deaf(fleet);
      await fleet.relay.redis.kill();
      fleet.ledger.guardLost();
      await untilRefused(fleet, fleet.agents);
      await fleet.relay.redis.start();
      alive();
      return over(fleet.agents);
    },
  },
  {
    name: "SCRIPT FLUSH",
    times: 10,
    inject: async (fleet) => {
      await fleet.stage.flushScripts();
      return over(fleet.agents);
    },
  },
  {
    name: "channel killed",
    times: 5,
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      const agents = fleet.agentsOf(pod);
      const ports = pod.redis.links("ws-connector-channel").map(({ upstream }) => upstream.localPort);
      const alive = deaf(fleet, agents);
      for (const port of ports) await fleet.stage.view.client.call("CLIENT", "KILL", "ADDR", `127.0.0.1:${port}`);
      alive();
      return over(agents);
    },
  },
  {
    name: "channel over its output limit",
    times: 3,
    inject: async (fleet) => {
      const { client } = fleet.stage.view;
      const pod = fleet.connectorFor(0);
      const agents = fleet.agentsOf(pod);
      const limit = "client-output-buffer-limit";
      const [, before] = (await client.config("GET", limit)) as [string, string];
      await client.config("SET", limit, OUTPUT_LIMIT);
      const alive = deaf(fleet, agents);
      await overflow(fleet, pod, agents);
      await client.config("SET", limit, before);
      pod.redis.heal();
      await pod.untilReady();
      alive();
      return over(agents);
    },
  },
];

/** Deliveries to these agents, or to all, may be lost until the function that is returned is called. */
export function deaf(fleet: Fleet, agents?: readonly ReturningAgent[]): () => void {
  const gaps = agents === undefined ? [fleet.ledger.gap()] : agents.map(({ id }) => fleet.ledger.gap(id));
  return () => {
    for (const end of gaps) end();
  };
}

/** Resolves when each of these agents was refused with `unavailable`, since now. */
export async function untilRefused(fleet: Fleet, agents: readonly ReturningAgent[]): Promise<void> {
  const since = performance.now();
  const isRefused = ({ id }: ReturningAgent) =>
    fleet.ledger.content.entries.some(
      ({ from, attempts }) =>
        from === id &&
        attempts.some(({ at, answer }) => at > since && answer?.accepted === false && answer.code === "unavailable"),
    );
  await until("all are refused", () => agents.every(isRefused));
}

/** Resolves when each agent had an ack that took longer than Redis takes at its best. */
async function untilAnsweredSlowly(fleet: SingleFleet): Promise<void> {
  const since = performance.now();
  const isSlowed = ({ id }: ReturningAgent) =>
    fleet.ledger.content.entries.some(
      ({ from, attempts }) =>
        from === id && attempts.some(({ at, answer }) => at > since && answer?.accepted && answer.at - at >= 100),
    );
  await until("all are answered slowly", () => fleet.agents.every(isSlowed));
}

async function cutSilently(pod: FleetPod, name: LinkName): Promise<void> {
  if (pod.redis.links(name).length === 0) throw new Error(`The pod has no link ${name}.`);
  pod.redis.halfOpen(name);
}

/** Large messages to a pod that does not read its channel, until Redis ends it. */
async function overflow(fleet: SingleFleet, pod: FleetPod, targets: readonly ReturningAgent[]): Promise<void> {
  const said = () => fleet.relay.redis.output.split("output buffer limits").length;
  const before = said();
  const sender = fleet.agents.find((agent) => !targets.includes(agent)) as ReturningAgent;
  await until("Redis gives the channel up", () => {
    pod.redis.stall("ws-connector-channel");
    for (let n = 0; n < LARGE_AT_ONCE && sender.unsettled < 2 * LARGE_AT_ONCE; n += 1) {
      sender.send("message.send", { to: targets[n % targets.length]?.id, payload: { message: LARGE_MESSAGE } });
    }
    return said() > before;
  });
}
