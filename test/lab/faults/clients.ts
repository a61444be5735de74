import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { TcpProxy } from "../../support/redis-proxy.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import { deaf } from "../faults.ts";
import { nameOf, type SingleFleet } from "../fleet.ts";
import { promisedTo } from "./looks.ts";
import { type Fault, over } from "./survive.ts";

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
