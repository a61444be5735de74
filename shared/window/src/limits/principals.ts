import { hash } from "node:crypto";
import { ISSUER_ENTRY_PREFIX, type JsonObject } from "relay-protocol/wire/envelope.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { shareOf } from "../redis/partitions.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";

/**
 * Principal of an envelope: the key that signed it, the issuer of its credential, or the API key of a gateway request.
 * The kind is part of it, so ids of different kinds never collide. Source: docs/protocol.md#sessions.
 */
export type Principal = `${"key" | "issuer" | "api"}:${string}`;

/** An agent of an issuer, by its id. */
type IssuedAgent = `agent:${string}`;

/**
 * Holder of bounded rates: a principal, or an agent of an issuer. Such an agent has the rates of one key, within the
 * issuer's rates.
 */
export type RateHolder = Principal | IssuedAgent;

/** The issuer if there is one, else the key. */
export function principalOf({
  keyId,
  issuer,
}: {
  readonly keyId: string;
  readonly issuer?: string | undefined;
}): Principal {
  return issuer === undefined ? `key:${keyId}` : `issuer:${issuer}`;
}

export function principalOfApiKey(id: string): Principal {
  return `api:${id}`;
}

export function isIssuer(holder: RateHolder): boolean {
  return holder.startsWith("issuer:");
}

/** False for an agent of an issuer. */
export function isPrincipal(holder: RateHolder): holder is Principal {
  return !holder.startsWith("agent:");
}

/**
 * The holders whose rates an envelope counts for. Agents of one issuer may be strangers, so none may use up the rates
 * of all. The agent counts by its id, because an issuer may give it any number of keys.
 */
export function rateHoldersOf(principal: Principal, agent: string): RateHolder[] {
  return isIssuer(principal) ? [principal, agent as IssuedAgent] : [principal];
}

/** Multiple of one key's bounds. An issuer answers for very many agents. */
export function boundsFactorOf(holder: RateHolder): number {
  return isIssuer(holder) ? CREDENTIAL_LIMITS.issuerFactor : 1;
}

/** Kind of the principal, and its id in the keys file. */
export function principalNameOf(principal: Principal): { readonly kind: string; readonly id: string } {
  const [kind = "", id = ""] = labelsOf(principal).split(" ");
  return { kind, id };
}

/** Kind and id in the keys file, as labels of metrics. */
export function labelsOf(principal: Principal): string {
  return principal.replace(":", " ");
}

const CHARACTERS = 11;

/** The last holder: agents of one issuer register one after another. */
let lastHolder: RateHolder | undefined;
let lastDigest = "";

/**
 * Redis holds this digest in place of a principal's or agent's id. It is the first 11 characters (66 bits) of the
 * base64url SHA-256 of kind and id. The operator chooses principals, but an issuer chooses its agents' names. It would
 * have to try 2^66 names to share the leases of a given other holder.
 */
export function holderDigestOf(holder: RateHolder): string {
  if (holder !== lastHolder) {
    lastDigest = hash("sha256", holder, "base64url").slice(0, CHARACTERS);
    lastHolder = holder;
  }
  return lastDigest;
}

const ISSUER_MARK = "@";
const EVERYONE = "";

/** Script argument of a connection that does not know whom its agent accepts envelopes from. */
export const NOT_KNOWN = "-";

/**
 * Whom an agent accepts envelopes from, by its register: words with a space before and after each. A word is an agent
 * id, a namespace, or `@` with an issuer's digest. EVERYONE if the register names none.
 */
export function acceptFromOf({ accept_from: entries }: JsonObject): string {
  if (!Array.isArray(entries)) return EVERYONE;
  return ` ${entries.map(wordOf).join(" ")} `;
}

/** An issuer's entry is spelled like its principal. */
function wordOf(entry: string): string {
  const isIssuer = entry.startsWith(ISSUER_ENTRY_PREFIX);
  return isIssuer ? ISSUER_MARK + holderDigestOf(entry as Principal) : entry;
}

/** Most agents of one key with a namespace, and of one issuer. 0 = no limit. Source: docs/protocol.md#capacity. */
export interface AgentLimits {
  readonly agentsPerKey: number;
  readonly agentsPerIssuer: number;
}

/** The principal that registers an agent. */
export interface AgentPrincipal {
  readonly principal: Principal;
  /**
   * True if the principal may register agents that the keys file does not list one by one. Redis counts such agents.
   */
  readonly hasNamespace?: boolean;
}

/** Share of the limits for each partition. */
export function limitsOfPartition(limits: Partial<AgentLimits>, partitions: number): AgentLimits {
  const { agentsPerKey = 0, agentsPerIssuer = 0 } = limits;
  return { agentsPerKey: shareOf(agentsPerKey, partitions), agentsPerIssuer: shareOf(agentsPerIssuer, partitions) };
}

/**
 * Two script arguments: the place in KEYS of the key that counts the principal's agents, and how many agents it may
 * have. Both are empty without a limit.
 * @param limits of the partition.
 */
export function agentLimitArgs(
  { principal, hasNamespace = false }: AgentPrincipal,
  keys: PartitionKeys,
  limits: AgentLimits,
  numberOf: (key: string) => number,
): (number | "")[] {
  const most = isIssuer(principal) ? limits.agentsPerIssuer : limits.agentsPerKey;
  if (!hasNamespace || most === 0) return ["", ""];
  return [numberOf(keys.agents(holderDigestOf(principal))), most];
}
