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

/** Who may sign credentials, for which agents: the form of the relay's keys file. Source: docs/protocol.md#credentials. */
export interface IssuerRecord {
  readonly issuer: string;
  readonly keys: readonly {
    /** Ed25519, 32 bytes in base64url. */
    readonly public_key: string;
    /** ISO 8601, with an offset. */
    readonly not_before?: string;
    readonly expires_at?: string;
  }[];
  /** Ids, name spaces such as `agent://acme.*`, or `*`: whoever no other pattern names. */
  readonly agents: readonly string[];
  /** Of the agent, or of any: credentials that were issued before that time no longer hold. */
  readonly revoked?: readonly { readonly agent: string; readonly issued_before: string }[];
}

/** What a credential says. Times are epoch milliseconds. */
export interface CredentialFacts {
  readonly issuer: string;
  readonly agent: string;
  /** The agent's Ed25519 key, in base64url. */
  readonly publicKey: string;
  /** The agent's X25519 key, in base64url. */
  readonly sealingKey: string | undefined;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore: number;
  /** The relays that it is for; undefined = any. */
  readonly audience: readonly string[] | undefined;
}

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
