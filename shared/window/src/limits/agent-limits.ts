import { shareOf } from "../redis/partitions.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import { holderDigestOf } from "./holder-digest.ts";
import { isIssuer, type Principal } from "./principal.ts";

/** Agents that one key with a namespace may have, and one issuer; 0 = no limit. Source: docs/protocol.md#capacity. */
export interface AgentLimits {
  readonly agentsPerKey: number;
  readonly agentsPerIssuer: number;
}

/** Who brings an agent. */
export interface AgentBringer {
  readonly principal: Principal;
  /** True when the principal may bring agents that nobody listed one by one: those are counted. */
  readonly hasNamespace?: boolean;
}

/** What each partition takes of them. */
export function limitsOfPartition(limits: Partial<AgentLimits>, partitions: number): AgentLimits {
  const { agentsPerKey = 0, agentsPerIssuer = 0 } = limits;
  return { agentsPerKey: shareOf(agentsPerKey, partitions), agentsPerIssuer: shareOf(agentsPerIssuer, partitions) };
}

/**
 * Two arguments of a script: the key that counts the agents of a principal, by its place among the keys, and how many it may
 * have; nothing where they are not limited. @param limits of the partition.
 */
export function agentLimitArgs(
  { principal, hasNamespace = false }: AgentBringer,
  keys: PartitionKeys,
  limits: AgentLimits,
  numberOf: (key: string) => number,
): (number | "")[] {
  const most = isIssuer(principal) ? limits.agentsPerIssuer : limits.agentsPerKey;
  if (!hasNamespace || most === 0) return ["", ""];
  return [numberOf(keys.agents(holderDigestOf(principal))), most];
}
