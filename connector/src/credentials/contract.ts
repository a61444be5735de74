/** Names and forms of credentials. Source: docs/protocol.md#credentials. */

/** The name of an issuer, the claim `iss`. */
export const ISSUER = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Among the agents of an issuer: whoever no other pattern names. */
export const ANY_AGENT = "*";

/** The header, member for member: nothing in a token chooses what it is checked with. */
export const HEADER = {
  typ: "relay-credential+jwt",
  /** RFC 9864, and its older name of RFC 8037. */
  algorithms: ["Ed25519", "EdDSA"],
} as const;

/** Why a credential vouches for nothing. */
export type CredentialReason =
  | "unknown_issuer"
  | "signature"
  | "expired"
  | "not_yet_valid"
  | "revoked"
  | "agent_not_allowed"
  | "key_mismatch"
  | "wrong_relay";

const CREDENTIAL_KEY = /^jkt-[A-Za-z0-9_-]{43}$/;

/** True for the `key_id` of a key that a credential makes known: `jkt-` and the key's thumbprint. */
export function isCredentialKey(keyId: string): boolean {
  return CREDENTIAL_KEY.test(keyId);
}

export function credentialKeyId(thumbprint: string): string {
  return `jkt-${thumbprint}`;
}
