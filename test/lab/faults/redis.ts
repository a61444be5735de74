import type { LinkName } from "../../support/redis-proxy.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import { cut, deaf, hangRedis, restartRedis, slow } from "../faults.ts";
import type { FleetPod, SingleFleet } from "../fleet.ts";
import { type Fault, over, untilAnsweredSlowly, untilRefused } from "./survive.ts";

const SLOW_MS = [100, 400] as const;
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
      await hangRedis(fleet.stage, () => untilRefused(fleet, fleet.agents));
      return over(fleet.agents);
    },
  },
  {
    name: "Redis cut off",
    times: 5,
    inject: async (fleet) => {
      await cut(fleet, proxiesOf(fleet), fleet.agents, () => untilRefused(fleet, fleet.agents));
      return over(fleet.agents);
    },
  },
  {
    name: "Redis slow, 100–400 ms",
    times: 3,
    inject: async (fleet) => {
      await slow(proxiesOf(fleet), SLOW_MS, () => untilAnsweredSlowly(fleet, SLOW_MS[0]));
      return over(fleet.agents);
    },
  },
  {
    name: "commands half-open",
    times: 5,
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      cutSilently(pod, "ws-connector");
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
      cutSilently(pod, "ws-connector-channel");
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
      await restartRedis(fleet, () => untilRefused(fleet, fleet.agents));
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

function proxiesOf({ connectors }: SingleFleet) {
  return connectors.map(({ redis }) => redis);
}

function cutSilently(pod: FleetPod, name: LinkName): void {
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
