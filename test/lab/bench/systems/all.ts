import { startAgentRelay } from "./agent-relay.ts";
import { natsProgram, startNats } from "./nats.ts";
import { startPeer } from "./peers.ts";
import { type NodeArguments, SYSTEM_TITLES, type SystemName, type SystemUnderTest } from "./system.ts";

const NO_ARGUMENTS: NodeArguments = () => [];

/** @param nodeArguments for servers that run on Node. @param ours more of them, for our own alone. */
export function startSystem(
  name: SystemName,
  nodeArguments: NodeArguments = NO_ARGUMENTS,
  ours: NodeArguments = NO_ARGUMENTS,
): Promise<SystemUnderTest> {
  if (name === "nats") return startNats();
  if (name !== "agent-relay") return startPeer(name, nodeArguments);
  return startAgentRelay((role) => [...nodeArguments(role), ...ours(role)]);
}

/** Those of the named systems that this machine has. */
export function installed(names: readonly SystemName[]): SystemName[] {
  const known = Object.keys(SYSTEM_TITLES) as SystemName[];
  return known.filter((name) => names.includes(name) && (name !== "nats" || natsProgram() !== undefined));
}
