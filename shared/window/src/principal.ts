import { CREDENTIAL_LIMITS } from "protocol/contract/limits.ts";

/**
 * Who answers for what came in: the key that signed it, the issuer of its credential, or the API key that a gateway was given.
 * Tagged by its kind, so that ids of several kinds cannot meet. Source: docs/protocol.md#sessions.
 */
export type Principal = `${"key" | "issuer" | "api"}:${string}`;

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

export function isIssuer(principal: Principal): boolean {
  return principal.startsWith("issuer:");
}

/** How many times the bounds of one key hold for the principal: an issuer answers for very many agents. */
export function boundsFactorOf(principal: Principal): number {
  return isIssuer(principal) ? CREDENTIAL_LIMITS.issuerFactor : 1;
}

/** Its kind and its id in the keys file, as metrics label it. */
export function labelsOf(principal: Principal): string {
  return principal.replace(":", " ");
}
