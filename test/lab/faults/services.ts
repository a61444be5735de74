import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS, ENVELOPE_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { AgentSocket, type Frame, signed } from "../../support/agent.ts";
import { TcpProxy } from "../../support/redis-proxy.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import { deaf, endConnector, freeze, killConnector } from "../faults.ts";
import { type FleetPod, nameOf, PRELOADED, type SingleFleet } from "../fleet.ts";
import { KeyedSend, parties } from "../keyed-sends.ts";
import { type Fault, type Injected, isRefusedDelivery, over, promisedTo } from "./survive.ts";

/** Longer than a command may take: what the pod waited for has failed when it goes on. */
const FROZEN_MS = 1200;
/** How many envelopes are promised to the agents of a pod that hangs, before it goes on. */
const PROMISED_MEANWHILE = 50;
const { goingAway, superseded } = CLOSE_CODES;
/** What a client sees of a connection that ended without a goodbye. */
const NO_GOODBYE = 1006;

/** Requests to two gateways of which one dies, by so many callers at once. */
const REQUESTS = 36;
const CALLERS = 6;

/** Faults of connectors and of a gateway. */
const PROCESS_FAULTS: readonly Fault<SingleFleet>[] = [
  {
    name: "connector SIGKILL",
    times: 4,
    closes: [NO_GOODBYE],
    inject: async (fleet) => over(await killConnector(fleet, fleet.connectorFor(0))),
  },
  {
    name: "connector SIGTERM",
    times: 4,
    closes: [goingAway.code],
    inject: async (fleet) => over(await endConnector(fleet, fleet.connectorFor(0))),
  },
  {
    name: "connector SIGSTOP",
    times: 4,
    silences: true,
    inject: async (fleet) => {
      const pod = fleet.connectorFor(0);
      const agents = fleet.agentsOf(pod);
      const since = performance.now();
      const isLongEnough = () =>
        performance.now() - since > FROZEN_MS && promisedTo(fleet, agents, since) > PROMISED_MEANWHILE;
      await freeze(pod, () => until("the pod hangs for long enough, and is promised deliveries", isLongEnough));
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
      if (isRefusedDelivery(fleet, agent, since)) throw new Error("The late close took the new owner's route.");
      pod.redis.heal();
      const injected = over([agent, ...others]);
      await pod.untilReady();
      alive();
      await agent.start();
      return injected;
    },
  },
  {
    // Callers send over two gateways, of which one is killed. Each repeats its Idempotency-Key until it is accepted.
    name: "gateway SIGKILL",
    times: 3,
    inject: async (fleet) => {
      const gateways = await Promise.all([fleet.addPod("gateway"), fleet.addPod("gateway")]);
      const [doomed, survivor] = gateways;
      const acceptedAt: number[] = [];
      const open = () => gateways.filter(({ isThere }) => isThere);
      const calls = Array.from({ length: CALLERS }, async (_, caller) => {
        for (let n = caller; n < REQUESTS; n += CALLERS) {
          await new KeyedSend(fleet, parties(fleet, n)).untilAccepted(open, { first: n });
          acceptedAt.push(performance.now());
        }
      });
      const served = until("callers are served", () => acceptedAt.length > CALLERS);
      await Promise.race([served, Promise.all(calls)]);
      const killed = doomed.end("SIGKILL");
      const killedAt = performance.now();
      await Promise.all([killed, ...calls]);
      await survivor.end("SIGTERM");
      return { agents: [], endedAt: killedAt, backAt: acceptedAt.find((at) => at > killedAt) ?? Number.NaN };
    },
  },
];

const { maxClockSkewMs } = ENVELOPE_LIMITS;
/** Some of a tolerance is used up by the envelope's way. */
const WAY_MS = 10_000;
/** Pods may differ by a minute. Source: docs/protocol.md#replay. */
const TOLERATED_MS = 60_000 - WAY_MS;
const INTOLERABLE_MS = 600_000;

/** Clocks of pods that are off. Source: docs/protocol.md#envelopes, docs/protocol.md#replay. */
const CLOCK_FAULTS: readonly Fault<SingleFleet>[] = [
  { name: "clock 50 s slow", shiftMs: -TOLERATED_MS, inject: beTolerated },
  { name: "clock 50 s fast", shiftMs: TOLERATED_MS, inject: beTolerated },
  { name: "clock 10 min slow", shiftMs: -INTOLERABLE_MS, inject: beRefused },
  { name: "clock 10 min fast", shiftMs: INTOLERABLE_MS, inject: beRefused },
].map(({ name, shiftMs, inject }) => ({
  name,
  times: 1,
  closes: [superseded.code],
  refusal: "not_registered",
  inject: async (fleet) => {
    const settings = { CLOCK_SHIFT_MS: String(shiftMs) };
    const pod = await fleet.addPod("ws-connector", { settings, nodeArguments: ["--import", PRELOADED] });
    const injected = await inject(fleet, pod, shiftMs);
    await pod.end("SIGTERM");
    return injected;
  },
}));

export const SERVICE_FAULTS: readonly Fault<SingleFleet>[] = [...PROCESS_FAULTS, ...CLOCK_FAULTS];

/**
 * An agent comes by on the pod that is off: all that its clock lets pass is accepted, and accepted once, there and where
 * the clock is right.
 */
async function beTolerated(fleet: SingleFleet, pod: FleetPod, shiftMs: number): Promise<Injected> {
  const [agent, target] = fleet.agents as [ReturningAgent, ReturningAgent];
  const visitor = fleet.agent(nameOf(agent), pod.websocketUrl);
  await visitor.start();
  const podNow = Date.now() + shiftMs;
  const edge = maxClockSkewMs - WAY_MS;
  const all = [podNow - edge, Date.now(), podNow + edge].map((ts) =>
    visitor.send("message.send", { to: target.id, ts }),
  );
  await untilAnswered(fleet, all, 1);
  for (const envelope of all) visitor.sendAgain(envelope);
  await untilAnswered(fleet, all, 2);

  const injected = over([agent]);
  await agent.start();
  const passing = all.filter(({ ts }) => Math.abs(ts - Date.now()) < maxClockSkewMs);
  for (const envelope of passing) agent.sendAgain(envelope);
  await untilAnswered(fleet, passing, 3);
  return injected;
}

/** Nobody gets in over a pod whose clock is off by more, not even with the time that it says. */
async function beRefused(fleet: SingleFleet, pod: FleetPod): Promise<Injected> {
  const [agent] = fleet.agents as [ReturningAgent];
  const socket = await AgentSocket.open(pod.websocketUrl);
  const register = async (ts: number) => {
    const key = fleet.keyOf(nameOf(agent));
    const answer = await socket.ask(signed(key, { type: "agent.register", from: agent.id, ts }));
    if (answer.code !== "clock_skew") throw new Error(`A register was answered ${answer.code ?? answer.frame}.`);
    return answer.server_time as number;
  };
  await register(await register(Date.now()));
  await socket.close();
  return over([]);
}

async function untilAnswered(fleet: SingleFleet, envelopes: readonly Frame[], times: number): Promise<void> {
  await until("every envelope is answered", () =>
    envelopes.every(({ id }) => {
      const { attempts } = fleet.ledger.entry(id) ?? { attempts: [] };
      return attempts.length >= times && attempts.every(({ answer }) => answer !== undefined);
    }),
  );
}

const PROMISED_IN_VAIN = 10;
/** Two pings unanswered, and the tick that notices: an agent that is not there turns stale no later. */
const NOTICED_WITHIN_MS = Math.min(
  (CONNECTION_LIMITS.maxUnansweredPings + 1) * CONNECTION_LIMITS.pingIntervalMs,
  PRESENCE_LIMITS.staleAfterMs,
);

/** The network between an agent and its connector swallows everything, and neither side is told. */
export const CLIENT_FAULTS: readonly Fault<SingleFleet>[] = [
  {
    name: "agent half-open, comes back",
    times: 5,
    closes: [CLOSE_CODES.superseded.code],
    refusal: "not_registered",
    inject: (fleet) =>
      overAWire(fleet, async (agent, wire, alive) => {
        const since = performance.now();
        wire.halfOpen();
        await until("promises go into the void", () => promisedTo(fleet, [agent], since) > PROMISED_IN_VAIN);
        const injected = over([agent]);
        await agent.start();
        alive();
        return injected;
      }),
  },
  {
    name: "agent half-open, never noticed by it",
    times: 1,
    isLong: true,
    closes: [CLOSE_CODES.superseded.code],
    refusal: "not_registered",
    inject: (fleet) =>
      overAWire(fleet, async (agent, wire, alive) => {
        wire.halfOpen();
        const isGone = async () => !(await fleet.stage.view.isConnected(nameOf(agent)));
        await until("the relay lets the agent go", isGone, NOTICED_WITHIN_MS + 5000);
        alive();
        const injected = over([agent]);
        await agent.start();
        return injected;
      }),
  },
];

/** The first agent is reached over a wire that can fail; what becomes of the wire's end is not to touch who came after. */
async function overAWire<T>(
  fleet: SingleFleet,
  fail: (agent: ReturningAgent, wire: TcpProxy, alive: () => void) => Promise<T>,
): Promise<T> {
  const [agent] = fleet.agents as [ReturningAgent];
  const { process } = fleet.connectorFor(0);
  const wire = await new TcpProxy({ host: "127.0.0.1", port: process.port }).start();
  const wired = fleet.agent(nameOf(agent), `ws://${wire.host}/ws`);
  await wired.start();
  await until("the agent is there over the wire alone", () => !agent.isOnline);
  const result = await fail(agent, wire, deaf(fleet, [agent]));
  wired.abandon();
  await wire.stop();
  return result;
}
