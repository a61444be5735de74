import { hash } from "node:crypto";
import { ISSUER_ENTRY_PREFIX, type JsonObject } from "relay-protocol/wire/envelope.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { shareOf } from "../redis/partitions.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";

/**
 * Who answers for what came in: the key that signed it, the issuer of its credential, or the API key that a gateway was given.
 * Tagged by its kind, so that ids of several kinds cannot meet. Source: docs/protocol.md#sessions.
 */
export type Principal = `${"key" | "issuer" | "api"}:${string}`;

/** An agent that an issuer answers for, by its id. */
export type IssuedAgent = `agent:${string}`;

/** Whose rates are bounded: a principal's, and within those of an issuer each of its agents', as those of one key. */
export type RateHolder = Principal | IssuedAgent;

/** Of a key, or of the issuer that made it known. */
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

/** False of an agent of an issuer. */
export function isPrincipal(holder: RateHolder): holder is Principal {
  return !holder.startsWith("agent:");
}

/**
 * All whose rates what came in counts for. Agents of one issuer may be strangers to each other: none may use up what is for
 * all. By its id, since an issuer may give an agent any number of keys.
 */
export function rateHoldersOf(principal: Principal, agent: string): RateHolder[] {
  return isIssuer(principal) ? [principal, agent as IssuedAgent] : [principal];
}

/** How many times the bounds of one key hold: an issuer answers for very many agents. */
export function boundsFactorOf(holder: RateHolder): number {
  return isIssuer(holder) ? CREDENTIAL_LIMITS.issuerFactor : 1;
}

/** Its kind and its id in the keys file. */
export function bringerOf(principal: Principal): { readonly kind: string; readonly id: string } {
  const [kind = "", id = ""] = labelsOf(principal).split(" ");
  return { kind, id };
}

/** Its kind and its id in the keys file, as metrics label it. */
export function labelsOf(principal: Principal): string {
  return principal.replace(":", " ");
}

const CHARACTERS = 11;

/** Of the holder that was asked for last: the agents of one issuer register one after the other. */
let lastHolder: RateHolder | undefined;
let lastDigest = "";

/**
 * What names and values of Redis hold of a principal, or of an agent of an issuer, in place of its id: the first 11 characters,
 * 66 bits, of the SHA-256 of the id with its kind before it, in base64url. An operator names the principals; an issuer names its
 * agents, and would have to try 2^66 names to find one that shares the leases of a given other holder.
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

/** The argument of a script where a connection does not know whom its agent accepts envelopes from. */
export const NOT_KNOWN = "-";

/**
 * Whom an agent accepts envelopes from, of its register: words with a space before and after each, which are agent ids,
 * namespaces, and `@` with an issuer's digest; EVERYONE where it names none.
 */
export function acceptFromOf({ accept_from: entries }: JsonObject): string {
  if (!Array.isArray(entries)) return EVERYONE;
  return ` ${entries.map(wordOf).join(" ")} `;
}

/** An entry of an issuer is spelled as its principal is. */
function wordOf(entry: string): string {
  const isIssuer = entry.startsWith(ISSUER_ENTRY_PREFIX);
  return isIssuer ? ISSUER_MARK + holderDigestOf(entry as Principal) : entry;
}

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
