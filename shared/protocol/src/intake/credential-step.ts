import { type VerifyKey, verify } from "../signing/algorithms.ts";
import { type Credential, type Issuers, readCredential } from "../signing/credentials.ts";
import type { KeyRing, SigningEntry } from "../signing/key-ring.ts";
import { CREDENTIAL_KEY_PREFIX, CREDENTIAL_REASONS, type CredentialReason } from "../wire/credential.ts";
import type { Envelope } from "../wire/envelope.ts";
import { isRefusal, type Refusal, refuse } from "./refusal.ts";

/** What an envelope is judged by at this relay, whatever its connection. */
export interface KnownKeys {
  readonly ring: KeyRing;
  /** The names of this relay, with a port that is not the default: what `payload.relay` of a register may say. */
  readonly hosts: ReadonlySet<string>;
}

/** The keys of credentials that registers brought which were accepted on a connection. */
export interface BroughtKeys {
  /**
   * The key of one that holds now: that of the sender, who may share its key with others, else that of another agent.
   * Refusal: invalid_credential, where a credential is judged only now.
   */
  keyOf(keyId: string, from: unknown, ring: KeyRing, now: number): Refusal | SigningEntry | undefined;
}

/** A credential that a register presents, with the key that its signature is to be verified with. */
export interface PresentedCredential {
  readonly credential: Credential;
  readonly issuerKey: VerifyKey;
}

/** True for the id of a key that no keys file lists. */
export function isCredentialKey(keyId: string): boolean {
  return keyId.startsWith(CREDENTIAL_KEY_PREFIX);
}

/**
 * The credential that an envelope presents: of a register under a `jkt-` key, `payload.credential`; undefined when it
 * presents none. In the order: its size, its issuer, its claims, its key, the relay that it is meant for.
 * Refusal: invalid_credential. Source: docs/protocol.md#credentials.
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
 * The key of a credential that is shown beside an envelope, as an accepted register would have made it known.
 * Refusal: invalid_credential.
 */
export function keyOfShown(token: string, { ring, hosts }: KnownKeys, now: number): Refusal | SigningEntry {
  const shown = judge(token, ring, now, undefined);
  if (isRefusal(shown)) return shown;
  const { audience } = shown.credential;
  if (audience?.some((host) => hosts.has(host)) === false) return wrongRelay(hosts, undefined);
  return isIssued(shown) ? entryOfCredential(shown.credential) : invalidCredential("signature", undefined);
}

/** @param value the envelope that presents the token, for its id. */
function judge(token: unknown, { issuers }: KeyRing, now: number, value: unknown): Refusal | PresentedCredential {
  const credential = readCredential(token);
  if (credential === undefined) return invalidCredential("malformed", value);
  const issuerKey = issuers.keyOf(credential);
  if (issuerKey === undefined) return invalidCredential("unknown_issuer", value);
  const problem = issuers.problemOf(credential, now);
  if (problem === undefined) return { credential, issuerKey };
  return problem === "revoked" ? revoked(credential, issuers, value) : invalidCredential(problem, value);
}

/** Whether the credential was signed by its issuer. It takes as long as a signature: services verify it on other threads. */
export function isIssued({ credential: { signed, signature }, issuerKey }: PresentedCredential): boolean {
  return verify(issuerKey, signed, signature);
}

/** The key of a credential as one that signs envelopes. @param bytes the key, in memory that lives as long as what is returned. */
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

/** What an issuer revoked stands in the relay's manifest: whoever presents a credential can see whether it was issued too early. */
function revoked(credential: Credential, issuers: Issuers, value: unknown): Refusal {
  const refusal = invalidCredential("revoked", value);
  const [before, at] = [issuers.revokedBefore(credential), credential.issuedAt].map((ms) => new Date(ms).toISOString());
  return { ...refusal, hint: `${refusal.hint} Revoked is what was issued before ${before}; this one was at ${at}.` };
}

/** The names of the relay are public: whoever dialled one can say it. */
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

/** The host that the client dialled must be one of this relay's, so that no other relay can use a register that it was sent. */
function isMeantFor({ audience }: Credential, host: unknown, hosts: ReadonlySet<string>): boolean {
  if (typeof host !== "string" || !hosts.has(host)) return false;
  return audience === undefined || audience.includes(host);
}
