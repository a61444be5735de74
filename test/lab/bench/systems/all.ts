import type { Plan } from "../plan.ts";
import { EarlierRelay, oneRedis, startAgentRelay } from "./agent-relay.ts";
import { natsProgram, startNats, startPeer } from "./peers.ts";
import {
  BEFORE,
  type Contender,
  type NodeArguments,
  SYSTEM_TITLES,
  type SystemName,
  type SystemUnderTest,
} from "./system.ts";

const NO_ARGUMENTS: NodeArguments = () => [];

/** @param nodeArguments for servers that run on Node. @param ours more of them, for our own alone. */
export function startSystem(
  name: SystemName,
  nodeArguments: NodeArguments = NO_ARGUMENTS,
  ours: NodeArguments = NO_ARGUMENTS,
): Promise<SystemUnderTest> {
  if (name === "nats") return startNats();
  if (name !== "agent-relay" && name !== "agent-relay-gathering") return startPeer(name, nodeArguments);
  const own = name === "agent-relay-gathering" ? { RELAY_GATHER_MS: "1" } : {};
  return startAgentRelay((role) => [...nodeArguments(role), ...ours(role)], undefined, undefined, own);
}

/** Profiles and the like are of this tree's servers alone. */
export function startContender(
  name: Contender,
  { ours, before }: Pick<Plan, "ours" | "before">,
): Promise<SystemUnderTest> {
  if (name !== BEFORE) return startSystem(name, NO_ARGUMENTS, ours);
  if (before === undefined) throw new Error("There is no earlier tree to start.");
  return startAgentRelay(NO_ARGUMENTS, "hmac-sha256", oneRedis(new EarlierRelay(before.folder)));
}

/** Those of the named systems that this machine has. */
export function installed(names: readonly SystemName[]): SystemName[] {
  const known = Object.keys(SYSTEM_TITLES) as SystemName[];
  return known.filter((name) => names.includes(name) && (name !== "nats" || natsProgram() !== undefined));
}
