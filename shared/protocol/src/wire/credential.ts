/**
 * Credentials: an issuer's statement about an agent's key, as a JWT (RFC 7519) in compact form.
 * Source: docs/protocol.md#credentials.
 */

/**
 * Prefix of key ids of agents with a credential. The key's thumbprint (RFC 7638) follows. The keys file lists no such
 * id.
 */
export const CREDENTIAL_KEY_PREFIX = "jkt-";

/** Name of an issuer: the claim `iss`. */
export const ISSUER_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** In an issuer's `agents`: every agent that no other pattern of the keys file matches. */
export const ANY_AGENT = "*";

/** The exact header. So nothing in a token chooses the algorithm or the key that checks it. */
export const CREDENTIAL_HEADER = {
  typ: "relay-credential+jwt",
  /** The name of RFC 9864, and the older name of RFC 8037. */
  algorithms: ["Ed25519", "EdDSA"],
} as const;

/**
 * Reasons to refuse a credential, with advice for its holder. The reason is the first word of the detail of
 * `invalid_credential`.
 */
export const CREDENTIAL_REASONS = {
  malformed: {
    means: "it does not have the form of a credential",
    hint: "Present the token as its issuer made it; payload.credential is the compact JWT alone.",
  },
  unknown_issuer: {
    means: "the relay knows no issuer with this iss and kid",
    hint: "The relay's operator must admit the issuer; the issuers that are admitted stand in /.well-known/signing-manifest.json.",
  },
  signature: {
    means: "its signature does not match the key of its issuer",
    hint: "Present the token unchanged, or have its issuer issue another.",
  },
  expired: {
    means: "its term, or that of its issuer's key, is over",
    hint: "Have its issuer issue a new one, and register with that.",
  },
  not_yet_valid: {
    means: "its iat or nbf, or the begin of its issuer's key, lies in the future",
    hint: "Wait until then; if it should hold by now, its issuer's clock is wrong.",
  },
  revoked: {
    means: "its issuer revoked the credentials of that time",
    hint: "Ask its issuer for one that is issued after the time of the revocation, which may lie a minute ahead: only that is accepted.",
  },
  agent_not_allowed: {
    means: "its sub is not of the agents that its issuer speaks for",
    hint: "Get one of an issuer that speaks for the agent, or ask the relay's operator to add the agent to those of this issuer.",
  },
  key_mismatch: {
    means: "key_id is not jkt- and the thumbprint of the key in cnf",
    hint: "Set key_id to jkt- and the RFC 7638 thumbprint of the key in cnf, and sign with that key.",
  },
  wrong_relay: {
    means: "payload.relay, or aud, does not name this relay",
    hint: "Dial a name of this relay, or have its operator add the host that you dialled to RELAY_PUBLIC_HOSTS. payload.relay is that host, with a port that is not the default; connectors set it. If the credential has aud, that must contain it.",
  },
} as const satisfies Record<string, { readonly means: string; readonly hint: string }>;
export type CredentialReason = keyof typeof CREDENTIAL_REASONS;

/** Reasons why an accepted credential may become invalid. */
export const CREDENTIAL_PROBLEMS = [
  "unknown_issuer",
  "expired",
  "not_yet_valid",
  "revoked",
  "agent_not_allowed",
] as const satisfies readonly CredentialReason[];
export type CredentialProblem = (typeof CREDENTIAL_PROBLEMS)[number];

/** Why an agent is released: its listed key or its credential became invalid. */
export const RELEASE_REASONS = ["key_revoked_or_expired", ...CREDENTIAL_PROBLEMS] as const;
export type ReleaseReason = (typeof RELEASE_REASONS)[number];
