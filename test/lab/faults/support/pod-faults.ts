import { CLOSE_CODES } from "protocol/contract/close-codes.ts";
import { promiseOf } from "../../../support/ledger.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { until } from "../../../support/until.ts";
import type { Cluster } from "./cluster.ts";
import { type Fault, over } from "./fault.ts";
import { deaf } from "./redis-faults.ts";

/** Longer than a command may take: what the pod waited for has failed when it goes on. */
const FROZEN_MS = 1200;
/** How many envelopes are promised to the agents of a pod that hangs, before it goes on. */
const PROMISED_MEANWHILE = 50;
const { goingAway, superseded } = CLOSE_CODES;
/** What a client sees of a connection that ended without a goodbye. */
export const NO_GOODBYE = 1006;

/** Faults of connectors. */
export const POD_FAULTS: readonly Fault[] = [
  {
    name: "connector SIGKILL",
    times: 4,
    closes: [NO_GOODBYE],
    inject: async (cluster) => {
      const pod = cluster.connectorFor(0);
      const agents = cluster.agentsOf(pod);
      await cluster.replace(pod);
      const alive = deaf(cluster, agents);
      await pod.end("SIGKILL");
      await until("Redis knows", () => pod.redis.links().length === 0);
      alive();
      return over(agents);
    },
  },
  {
    name: "connector SIGTERM",
    times: 4,
    closes: [goingAway.code],
    inject: async (cluster) => {
      const pod = cluster.connectorFor(0);
      const agents = cluster.agentsOf(pod);
      await cluster.replace(pod);
      const code = await pod.end("SIGTERM");
      if (code !== 0) throw new Error(`The connector ended with ${code}.`);
      return over(agents);
    },
  },
  {
    name: "connector SIGSTOP",
    times: 4,
    silences: true,
    inject: async (cluster) => {
      const pod = cluster.connectorFor(0);
      const agents = cluster.agentsOf(pod);
      const since = performance.now();
      pod.process.freeze();
      await until("the pod hangs for long enough, and is promised deliveries", () => {
        return performance.now() - since > FROZEN_MS && promisedTo(cluster, agents, since) > PROMISED_MEANWHILE;
      });
      pod.process.thaw();
      return over(agents);
    },
  },
  {
    name: "two connectors claim an agent",
    times: 30,
    closes: [superseded.code],
    refusal: "not_registered",
    inject: async (cluster) => {
      const [agent] = cluster.agents as [ReturningAgent];
      const claimants = cluster.connectors.map(({ websocketUrl }) => cluster.agent(nameOf(agent), websocketUrl));
      await Promise.all(claimants.map((claimant) => claimant.start()));
      const all = [agent, ...claimants];
      await until("one connection is left", () => all.filter(({ isOnline }) => isOnline).length === 1);
      const owner = all.find(({ isOnline }) => isOnline) as ReturningAgent;
      const route = await cluster.view.route(nameOf(agent));
      if (route?.connection !== owner.connection)
        throw new Error("The route does not lead to the connection that is left.");
      const codes = all.filter((one) => one !== owner).map(({ closes }) => closes.at(-1));
      if (codes.some((code) => code !== superseded.code)) throw new Error(`Closed with ${codes}.`);
      const injected = over([agent]);
      await agent.start();
      return injected;
    },
  },
  {
    name: "close after a takeover that is not known yet",
    times: 5,
    closes: [superseded.code, NO_GOODBYE],
    refusal: "not_registered",
    inject: async (cluster) => {
      const [agent] = cluster.agents as [ReturningAgent];
      const pod = cluster.connectorFor(0);
      const others = cluster.agentsOf(pod).filter((one) => one !== agent);
      const successor = cluster.agent(nameOf(agent), cluster.connectorFor(1).websocketUrl);
      // A channel that says nothing is given up, with what is on it for the others.
      const alive = deaf(cluster, others);
      // What was published to the former connection ends with it.
      const moved = deaf(cluster, [agent]);
      pod.redis.hold("ws-connector-channel");
      await successor.start();
      moved();
      const since = performance.now();
      agent.abandon();
      await until("deliveries go on", () => promisedTo(cluster, [agent], since) > PROMISED_MEANWHILE / 2);
      if (refusedDeliveryTo(cluster, agent, since)) throw new Error("The late close took the new owner's route.");
      pod.redis.heal();
      const injected = over([agent, ...others]);
      await pod.untilReady();
      alive();
      await agent.start();
      return injected;
    },
  },
];

/** `name` of `agent://name`. */
export function nameOf({ id }: ReturningAgent): string {
  return id.slice("agent://".length);
}

/** How many envelopes that were sent since then are acknowledged as delivered to these agents in realtime. */
export function promisedTo(cluster: Cluster, agents: readonly ReturningAgent[], since: number): number {
  const ids = new Set(agents.map(({ id }) => id));
  return cluster.ledger.content.entries.filter(
    (entry) => entry.to !== undefined && ids.has(entry.to) && (promiseOf(entry)?.at ?? 0) > since,
  ).length;
}

/** True when an envelope to the agent, sent since then, was acknowledged as not delivered in realtime. */
function refusedDeliveryTo(cluster: Cluster, { id }: ReturningAgent, since: number): boolean {
  return cluster.ledger.content.entries.some(
    ({ to, attempts }) =>
      to === id && attempts.some(({ at, answer }) => at > since && answer?.accepted && !answer.deliverable),
  );
}
