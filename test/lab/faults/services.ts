import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { promiseOf } from "../../support/ledger.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import { type Fault, over } from "./support/fault.ts";
import type { Fleet } from "../fleet.ts";
import { deaf } from "./redis.ts";
import type { SingleFleet } from "./support/single-stage.ts";

/** Longer than a command may take: what the pod waited for has failed when it goes on. */
const FROZEN_MS = 1200;
/** How many envelopes are promised to the agents of a pod that hangs, before it goes on. */
const PROMISED_MEANWHILE = 50;
const { goingAway, superseded } = CLOSE_CODES;
/** What a client sees of a connection that ended without a goodbye. */
export const NO_GOODBYE = 1006;

/** Faults of connectors. */
export const POD_FAULTS: readonly Fault<SingleFleet>[] = [
  {
    name: "connector SIGKILL",
    times: 4,
    closes: [NO_GOODBYE],
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      const agents = fleet.agentsOf(pod);
      await fleet.replace(pod);
      const alive = deaf(fleet, agents);
      await pod.end("SIGKILL");
      await until("its links are gone", () => pod.redis.links().length === 0);
      await fleet.stage.caughtUp();
      alive();
      return over(agents);
    },
  },
  {
    name: "connector SIGTERM",
    times: 4,
    closes: [goingAway.code],
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      const agents = fleet.agentsOf(pod);
      await fleet.replace(pod);
      const code = await pod.end("SIGTERM");
      if (code !== 0) throw new Error(`The connector ended with ${code}.`);
      return over(agents);
    },
  },
  {
    name: "connector SIGSTOP",
    times: 4,
    silences: true,
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      const agents = fleet.agentsOf(pod);
      const since = performance.now();
      pod.process.freeze();
      await until("the pod hangs for long enough, and is promised deliveries", () => {
        return performance.now() - since > FROZEN_MS && promisedTo(fleet, agents, since) > PROMISED_MEANWHILE;
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
    inject: async (fleet) => {
      const [agent] = fleet.agents as [ReturningAgent];
      const claimants = fleet.connectors.map(({ websocketUrl }) => fleet.agent(nameOf(agent), websocketUrl));
      await Promise.all(claimants.map((claimant) => claimant.start()));
      const all = [agent, ...claimants];
      await until("one connection is left", () => all.filter(({ isOnline }) => isOnline).length === 1);
      const owner = all.find(({ isOnline }) => isOnline) as ReturningAgent;
      const route = await fleet.stage.view.route(nameOf(agent));
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
    inject: async (fleet) => {
      const [agent] = fleet.agents as [ReturningAgent];
      const pod = fleet.connectorFor(0);
      const others = fleet.agentsOf(pod).filter((one) => one !== agent);
      const successor = fleet.agent(nameOf(agent), fleet.connectorFor(1).websocketUrl);
      // A channel that says nothing is given up, with what is on it for the others.
      const alive = deaf(fleet, others);
      // What was published to the former connection ends with it.
      const moved = deaf(fleet, [agent]);
      pod.redis.hold("ws-connector-channel");
      await successor.start();
      moved();
      const since = performance.now();
      agent.abandon();
      await until("deliveries go on", () => promisedTo(fleet, [agent], since) > PROMISED_MEANWHILE / 2);
      if (refusedDeliveryTo(fleet, agent, since)) throw new Error("The late close took the new owner's route.");
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
export function promisedTo(fleet: Fleet, agents: readonly ReturningAgent[], since: number): number {
  const ids = new Set(agents.map(({ id }) => id));
  return fleet.ledger.content.entries.filter(
    (entry) => entry.to !== undefined && ids.has(entry.to) && (promiseOf(entry)?.at ?? 0) > since,
  ).length;
}

/** True when an envelope to the agent, sent since then, was acknowledged as not delivered in realtime. */
function refusedDeliveryTo(fleet: SingleFleet, { id }: ReturningAgent, since: number): boolean {
  return fleet.ledger.content.entries.some(
    ({ to, attempts }) =>
      to === id && attempts.some(({ at, answer }) => at > since && answer?.accepted && !answer.deliverable),
  );
}
