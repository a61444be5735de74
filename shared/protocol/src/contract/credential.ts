/**
 * Credentials: what an issuer signs of an agent's key. A JWT (RFC 7519) in compact form.
 * Source: docs/protocol.md#credentials.
 */

/** Key ids of agents with a credential: this, then the thumbprint of the key (RFC 7638). None stands in the keys file. */
export const CREDENTIAL_KEY_PREFIX = "jkt-";

/** The name of an issuer, the claim `iss`. */
export const ISSUER_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Among the agents of an issuer: whoever no other pattern of the keys file matches. */
export const ANY_AGENT = "*";

/** The header, member for member: nothing in a token chooses what it is checked with. */
export const CREDENTIAL_HEADER = {
  typ: "relay-credential+jwt",
  /** RFC 9864, and its older name of RFC 8037. */
  algorithms: ["Ed25519", "EdDSA"],
} as const;

/** Why a credential is refused: the first word of the detail of `invalid_credential`. */
export const CREDENTIAL_REASONS = {
  malformed: "it does not have the form of a credential",
  unknown_issuer: "the relay knows no issuer with this iss and kid",
  signature: "its signature does not match the key of its issuer",
  expired: "its term, or that of its issuer's key, is over",
  not_yet_valid: "its iat or nbf, or the begin of its issuer's key, lies in the future",
  revoked: "its issuer revoked the credentials of that time",
  agent_not_allowed: "its sub is not of the agents that its issuer speaks for",
  key_mismatch: "key_id is not jkt- and the thumbprint of the key in cnf",
  wrong_relay: "payload.relay, or aud, does not name this relay",
} as const;
export type CredentialReason = keyof typeof CREDENTIAL_REASONS;

/** Why a credential that was accepted does not hold any more. */
export const CREDENTIAL_PROBLEMS = [
  "unknown_issuer",
  "expired",
  "not_yet_valid",
  "revoked",
  "agent_not_allowed",
] as const satisfies readonly CredentialReason[];
export type CredentialProblem = (typeof CREDENTIAL_PROBLEMS)[number];

/** Why an agent is released: for its listed key, or for its credential. */
export const RELEASE_REASONS = ["key_revoked_or_expired", ...CREDENTIAL_PROBLEMS] as const;
export type ReleaseReason = (typeof RELEASE_REASONS)[number];
