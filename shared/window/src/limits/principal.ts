import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";

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
