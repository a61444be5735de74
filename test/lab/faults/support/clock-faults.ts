import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import { AgentSocket, type Frame, signed } from "../../../support/agent.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { until } from "../../../support/until.ts";
import { type Fault, type Injected, over } from "./fault.ts";
import type { FleetPod } from "../../fleet.ts";
import { nameOf } from "../services.ts";
import type { SingleFleet } from "./single-stage.ts";

const { maxClockSkewMs } = ENVELOPE_LIMITS;
/** Some of a tolerance is used up by the envelope's way. */
const WAY_MS = 10_000;
/** Pods may differ by a minute. Source: docs/protocol.md#replay. */
const TOLERATED_MS = 60_000 - WAY_MS;
const INTOLERABLE_MS = 600_000;
const SHIFTED_CLOCK = new URL("../shifted-clock.mjs", import.meta.url).href;

/** Clocks of pods that are off. Source: docs/protocol.md#envelopes, docs/protocol.md#replay. */
export const CLOCK_FAULTS: readonly Fault<SingleFleet>[] = [
  { name: "clock 50 s slow", shiftMs: -TOLERATED_MS, inject: beTolerated },
  { name: "clock 50 s fast", shiftMs: TOLERATED_MS, inject: beTolerated },
  { name: "clock 10 min slow", shiftMs: -INTOLERABLE_MS, inject: beRefused },
  { name: "clock 10 min fast", shiftMs: INTOLERABLE_MS, inject: beRefused },
].map(({ name, shiftMs, inject }) => ({
  name,
  times: 1,
  closes: [CLOSE_CODES.superseded.code],
  refusal: "not_registered",
  inject: async (fleet) => {
    const env = { CLOCK_SHIFT_MS: String(shiftMs) };
    const pod = await fleet.addPod("ws-connector", env, ["--import", SHIFTED_CLOCK]);
    const injected = await inject(fleet, pod, shiftMs);
    await pod.end("SIGTERM");
    return injected;
  },
}));

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
  const key = fleet.relay.keys.agents.get(nameOf(agent));
  if (key === undefined) throw new Error("The agent has no key.");
  const socket = await AgentSocket.open(pod.websocketUrl);
  const register = async (ts: number) => {
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
      return attempts.length === times && attempts.every(({ answer }) => answer !== undefined);
    }),
  );
}
