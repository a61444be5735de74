import { type VerifyKey, verify } from "../signing/algorithms.ts";
import { type Credential, type Issuers, readCredential } from "../signing/credentials.ts";
import type { KeyRing, SigningEntry } from "../signing/key-ring.ts";
import { CREDENTIAL_KEY_PREFIX, CREDENTIAL_REASONS, type CredentialReason } from "../wire/credential.ts";
import type { Envelope } from "../wire/envelope.ts";
import { isRefusal, type Refusal, refuse } from "./refusal.ts";

/** Keys and names of this relay, by which it judges envelopes of any connection. */
export interface KnownKeys {
  readonly ring: KeyRing;
  /**
   * Host names of this relay, with a port if it is not the default. `payload.relay` of a register must be one of them.
   */
  readonly hosts: ReadonlySet<string>;
}

/** Keys of credentials whose registers were accepted on a connection. */
export interface BroughtKeys {
  /**
   * A valid key: the sender's if it has one, else another agent's. Agents may share a key. Refusal: invalid_credential,
   * if the credential was not judged before.
   */
  keyOf(keyId: string, from: unknown, ring: KeyRing, now: number): Refusal | SigningEntry | undefined;
}

/** A credential that a register presents, with the issuer's key that verifies its signature. */
export interface PresentedCredential {
  readonly credential: Credential;
  readonly issuerKey: VerifyKey;
}

/** True for a key id that no keys file can list. */
export function isCredentialKey(keyId: string): boolean {
  return keyId.startsWith(CREDENTIAL_KEY_PREFIX);
}

/**
 * The credential that a register under a `jkt-` key presents in `payload.credential`. Undefined if there is none.
 * Checks in this order: size, issuer, claims, key, relay. Refusal: invalid_credential.
 * Source: docs/protocol.md#credentials.
 */
export function presentedCredential(
  value: Pick<Envelope, "key_id"> & { readonly type?: unknown; readonly payload?: unknown },
  { ring, hosts }: KnownKeys,
  now: number,
): Refusal | PresentedCredential | undefined {
  if (value.type !== "agent.register" || !isCredentialKey(value.key_id)) return undefined;
  const payload = value.payload as { readonly credential?: unknown; readonly relay?: unknown } | null | undefined;
  if (payload?.credential === undefined) return undefined;

  const presented = judge(payload.credential, ring, now, value);
  if (isRefusal(presented)) return presented;
  const { credential } = presented;
  if (credential.keyId !== value.key_id) return invalidCredential("key_mismatch", value);
  if (payload.relay === undefined) return lacksRelay(hosts, value);
  return isMeantFor(credential, payload.relay, hosts) ? presented : wrongRelay(hosts, value);
}

/**
 * The key of a credential that comes beside an envelope, as an accepted register would bring it. Refusal:
 * invalid_credential.
 */
export function keyOfShown(token: string, { ring, hosts }: KnownKeys, now: number): Refusal | SigningEntry {
  const shown = judge(token, ring, now, undefined);
  if (isRefusal(shown)) return shown;
  const { audience } = shown.credential;
  if (audience?.some((host) => hosts.has(host)) === false) return wrongRelay(hosts, undefined);
  return isIssued(shown) ? entryOfCredential(shown.credential) : invalidCredential("signature", undefined);
}

/** @param value the envelope that presents the token. The refusal names its id. */
function judge(token: unknown, { issuers }: KeyRing, now: number, value: unknown): Refusal | PresentedCredential {
  const credential = readCredential(token);
  if (credential === undefined) return invalidCredential("malformed", value);
  const issuerKey = issuers.keyOf(credential);
  if (issuerKey === undefined) return invalidCredential("unknown_issuer", value);
  const problem = issuers.problemOf(credential, now);
  if (problem === undefined) return { credential, issuerKey };
  return problem === "revoked" ? revoked(credential, issuers, value) : invalidCredential(problem, value);
}

/**
 * Whether the issuer signed the credential. It takes as long as verifying an envelope, so services do it on other
 * threads.
 */
export function isIssued({ credential: { signed, signature }, issuerKey }: PresentedCredential): boolean {
  return verify(issuerKey, signed, signature);
}

/**
 * The key of a credential as an entry that signs envelopes.
 * @param bytes the key, in memory that lives as long as the entry.
 */
export function entryOfCredential(
  { keyId, publicKey, issuer, agent }: Pick<Credential, "keyId" | "publicKey" | "issuer" | "agent">,
  bytes = Buffer.from(publicKey, "base64url"),
): SigningEntry {
  return {
    keyId,
    identity: `${keyId} credential`,
    key: { alg: "ed25519", publicKey: bytes },
    hasNamespace: true,
    issuer,
    mayAct: (from) => from === agent,
  };
}

export function invalidCredential(reason: CredentialReason, value: unknown): Refusal {
  const { means, hint } = CREDENTIAL_REASONS[reason];
  return refuse("invalid_credential", value, { detail: `${reason}: ${means}.`, hint });
}

/** The relay's manifest publishes revocations, so the hint may name the times. */
function revoked(credential: Credential, issuers: Issuers, value: unknown): Refusal {
  const refusal = invalidCredential("revoked", value);
  const [before, at] = [issuers.revokedBefore(credential), credential.issuedAt].map((ms) => new Date(ms).toISOString());
  return { ...refusal, hint: `${refusal.hint} Revoked is what was issued before ${before}; this one was at ${at}.` };
}

/** The names of the relay are public, so the hint may list them. */
function wrongRelay(hosts: ReadonlySet<string>, value: unknown): Refusal {
  const refusal = invalidCredential("wrong_relay", value);
  return { ...refusal, hint: `${refusal.hint} ${namesOf(hosts)}` };
}

function lacksRelay(hosts: ReadonlySet<string>, value: unknown): Refusal {
  const hint = `Set payload.relay to the host that you dialled, with a port that is not the default. ${namesOf(hosts)}`;
  return refuse("invalid_credential", value, { detail: "wrong_relay: payload.relay is missing.", hint });
}

function namesOf(hosts: ReadonlySet<string>): string {
  return `This relay is ${[...hosts].join(" or ")}.`;
}

/**
 * The host that the client dialled must be a name of this relay. Else another relay could replay a register that it
 * received.
 */
function isMeantFor({ audience }: Credential, host: unknown, hosts: ReadonlySet<string>): boolean {
  if (typeof host !== "string" || !hosts.has(host)) return false;
  return audience === undefined || audience.includes(host);
}
