/**
 * The catalogue of errors: the codes of the relay, and those of the connector itself. Source: docs/protocol.md#errors,
 * docs/protocol.md#close-codes.
 */

import type { FieldError } from "./field-errors.ts";

const RETRIES = ["never", "fix", "later"] as const;
export type Retry = (typeof RETRIES)[number];

/** What an error code means, and what to do about it. */
export interface ErrorEntry {
  /** One short sentence. */
  readonly message: string;
  /** What to do. */
  readonly hint: string;
  /**
   * `never`: the same call cannot succeed. `fix`: fix what the hint names first. `later`: the same call may succeed
   * later.
   */
  readonly retry: Retry;
}

const entry = (retry: Retry, message: string, hint: string): ErrorEntry => ({ message, hint, retry });

/** Codes of the relay's `error` frames. */
export const RELAY_ERRORS = {
  malformed_json: entry("fix", "The frame is not JSON.", "This package never sends one; report it."),
  frame_too_large: entry("fix", "The signed envelope is over 32768 bytes.", "Shorten the payload."),
  invalid_envelope: entry(
    "fix",
    "The envelope is invalid for its type.",
    "The message names each field that is wrong, and how, and so does errors.",
  ),
  clock_skew: entry(
    "fix",
    "The clock was too far from the relay's.",
    "It is corrected by now: send anew. If that is refused too, set this machine's clock.",
  ),
  unknown_key: entry(
    "fix",
    "The relay does not know the key, or it is not in force.",
    "Give the credential of the key, which its issuer signs for the public record of relay keygen; or have the relay's operator list the key.",
  ),
  bad_signature: entry("fix", "The signature does not match the key.", "Check that the private key belongs to keyId."),
  key_not_allowed: entry("fix", "The key may not sign for this agent.", "Use a key whose agents list holds the agent."),
  invalid_credential: entry(
    "fix",
    "The credential of the register is not accepted.",
    "The relay's message begins with the reason; have the issuer issue one for this key, this agent and this relay.",
  ),
  wrong_relay: entry(
    "fix",
    "The relay does not go by the name that was dialled.",
    "Dial a name of the relay, or have its operator add the host that you dialled to RELAY_PUBLIC_HOSTS.",
  ),
  wrong_connection: entry(
    "fix",
    "The register was signed for another connection.",
    "Something between agent and relay joined two connections; connect without it.",
  ),
  not_registered: entry(
    "fix",
    "This connection does not own the agent.",
    "The connector registers it again: send once it is online.",
  ),
  unknown_session: entry("never", "No such session.", "Sessions are kept until one hour after their end."),
  not_your_session: entry(
    "fix",
    "The session is not between this agent and that one.",
    "Only the target decides, and `to` is the requester.",
  ),
  session_closed: entry("never", "The session is already decided or expired.", "Its requester may request a new one."),
  rate_limited: entry("later", "Too many envelopes.", "Send fewer; retryAfterMs says when to try again."),
  unavailable: entry("later", "The relay cannot reach its Redis.", "The connector sends the same envelope again."),
  internal_error: entry(
    "later",
    "An unexpected error occurred in the relay.",
    "Try again later; if it persists, tell the relay's operator.",
  ),
  not_accepted_by_target: entry(
    "never",
    "The target does not accept envelopes of this agent.",
    "Send to another agent. The target names the senders that it accepts: whoever runs it can add this one.",
  ),
  over_capacity: entry(
    "later",
    "The relay has no room for this now.",
    "Agents that are present go on, and messages. The connector registers again by itself; request the session again later.",
  ),
  agents_per_key: entry(
    "fix",
    "The key has as many agents as one key may have.",
    "Use an agent of the key that is present, or another key; an agent that is offline makes room for a new one.",
  ),
  register_timeout: entry("fix", "The relay got no valid envelope within 10 s.", "relay check says what is wrong."),
} as const satisfies Record<string, ErrorEntry>;

/** Codes of the connector itself. */
export const CONNECTOR_ERRORS = {
  invalid_key: entry(
    "fix",
    "The key cannot be used.",
    "privateKey is the 32-byte seed, secret at least 32 bytes, both base64url; browsers sign in secure contexts only.",
  ),
  queue_full: entry(
    "later",
    "Too many sends are unsettled.",
    "Await earlier sends before the next, or raise maxPending.",
  ),
  timeout: entry("later", "No answer came in time.", "See outcome: when it is unknown, the target may have got it."),
  aborted: entry("never", "The caller aborted.", "See outcome: when it is unknown, the target may have got it."),
  target_not_online: entry(
    "later",
    "The target is not online: nobody received it, and the relay keeps nothing.",
    "Send it again when the target is online; waitOnline waits for that.",
  ),
  not_answerable: entry(
    "never",
    "Only messages are replied to, and a message.reply is not: two agents that both reply would go on forever.",
    "Ask or send anew, or decide the session with approve or reject.",
  ),
  outcome_unknown: entry(
    "never",
    "The envelope was sent, no answer came, and it is too old to be sent again.",
    "Ask the target before sending anew: it may have got it.",
  ),
  closed: entry("never", "The connector is closed.", "Make a new one."),
  unreachable: entry("later", "The relay is not reachable.", "The connector tries again by itself."),
  policy: entry(
    "never",
    "The relay closed the connection for what it was sent (1003, 1007, 1008, 1009).",
    "The error events before it say what was refused, and why: mend that first.",
  ),
  key_revoked: entry(
    "fix",
    "The key was revoked or has expired (4403).",
    "Have the relay's operator list another key, or an issuer issue a new credential. Then start again with that.",
  ),
  superseded: entry(
    "never",
    "Another connection registered this agent (4409).",
    "Run one connector an agent; stop the other before you start this one again.",
  ),
  superseded_elsewhere: entry(
    "fix",
    "The agent is online over another connection, which this start would end.",
    "Stop the other, or start with takeOver: true, which ends it. Of a machine that is lost the relay lets go 45 s after its last heartbeat: start again then. A relay listen or relay mcp of the same key shares its connection with relay send and relay ask of the same user; a connector shares none.",
  ),
  not_a_relay: entry(
    "fix",
    "Something answers over HTTP at the relay's address, and it is not a relay.",
    "Give the relay's base address, or its HTTP address as httpUrl; with takeOver: true the start goes on.",
  ),
  refused: entry("never", "The relay refused for a reason that this version does not know.", "Update this package."),
  forged_delivery: entry(
    "never",
    "The signature of a delivery does not match its key; it was dropped.",
    "Tell the relay's operator.",
  ),
  unverified_delivery: entry(
    "fix",
    "Nothing that is pinned here vouches for the sender of a delivery; it was dropped.",
    "Pin the sender's key in trust.keys, its issuer in trust.issuers, or name the gateway's key in trust.gateways.",
  ),
  stale_delivery: entry(
    "never",
    "A delivery was signed too long ago, or too far in the future; it was dropped.",
    "The relay delivers at once: it, or somebody before it, kept the envelope. maxDeliveryAgeMs is the limit.",
  ),
  clock_untrusted: entry(
    "fix",
    "This machine's clock and the relay's are more than 5 minutes apart: what is old cannot be told, and nothing is verified.",
    "Set this machine's clock (NTP).",
  ),
  reused_id: entry(
    "never",
    "A delivery has the id of another envelope that its sender signed before; it was dropped, and its sender is not told.",
    "Ask the sender to send it again under a new id: every envelope has its own.",
  ),
  unopenable_delivery: entry(
    "fix",
    "A delivery was sealed, and no key given here opens it, or no pinned key or issuer vouches for its sender; it was dropped.",
    "Give the key of the credential that the sender found in sealingKeys, and pin the sender's issuer.",
  ),
  misdirected_delivery: entry(
    "never",
    "A delivery was for another agent; it was dropped.",
    "Tell the relay's operator.",
  ),
  misnamed_session: entry(
    "never",
    "A session request was delivered under an id that is not made of it; it was dropped.",
    "Tell the relay's operator.",
  ),
  malformed_delivery: entry("never", "A delivery was not an envelope; it was dropped.", "Tell the relay's operator."),
  invalid_issuer: entry(
    "fix",
    "A record of an issuer cannot be used.",
    "It has the form of an issuer in the relay's keys file; no pattern and no key stands under two issuers.",
  ),
  recipient_unknown: entry(
    "later",
    "The relay gives no credential of the recipient, so there is no key to seal to.",
    "Check its id. It has to have been online with a credential: waitOnline waits for that, then seal again.",
  ),
  recipient_unverified: entry(
    "fix",
    "No pinned issuer vouches for the recipient's credential.",
    "Pin the recipient's issuer in trust.",
  ),
  recipient_unsealable: entry(
    "fix",
    "The recipient's credential names no X25519 key to seal to.",
    "The recipient has to register with a credential that has one in enc.",
  ),
  receipt_incomplete: entry(
    "never",
    "Not all that a receipt consists of is there.",
    "Who signed or received both envelopes has a receipt; requests by a gateway, decisions without request_sha256 and keys without a credential have none.",
  ),
  listener_failed: entry("fix", "A listener threw; see cause.", "Fix the listener."),
} as const satisfies Record<string, ErrorEntry>;

const ERRORS: Record<ErrorCode, ErrorEntry> = { ...RELAY_ERRORS, ...CONNECTOR_ERRORS };

export type RelayErrorCode = keyof typeof RELAY_ERRORS;
export type ErrorCode = RelayErrorCode | keyof typeof CONNECTOR_ERRORS;

/** Details of an error beyond its code. */
export interface ErrorDetails {
  /** The relay's text, in place of the catalogue's. */
  readonly message?: string | undefined;
  readonly hint?: string | undefined;
  /** What the relay says of it, in place of the catalogue's. */
  readonly retry?: Retry | undefined;
  readonly outcome?: "refused" | "unknown" | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly closeCode?: number | undefined;
  readonly envelopeId?: string | undefined;
  readonly missing?: readonly string[] | undefined;
  readonly errors?: readonly FieldError[] | undefined;
  readonly cause?: unknown;
}

/** Every error that this package rejects with or reports. Its texts contain no key, signature or payload. */
export class RelayError extends Error {
  override readonly name = "RelayError";
  readonly code: ErrorCode;
  /** What to do about it. */
  readonly hint: string;
  /** See ErrorEntry. */
  readonly retry: Retry;
  /** `refused`: it did not happen. `unknown`: the envelope went out, and may have been accepted and delivered. */
  readonly outcome: "refused" | "unknown";
  /** Milliseconds after which to try again. */
  declare readonly retryAfterMs: number | undefined;
  /** Close code of the websocket, when a close is the reason. */
  declare readonly closeCode: number | undefined;
  declare readonly envelopeId: string | undefined;
  /** Parts of a receipt, of `receipt_incomplete`. */
  declare readonly missing: readonly string[] | undefined;
  /** Each field of the envelope that is wrong, of `invalid_envelope`; empty where nobody says it. */
  readonly errors: readonly FieldError[];

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    super(details.message ?? ERRORS[code].message, details.cause === undefined ? {} : { cause: details.cause });
    this.code = code;
    this.hint = details.hint ?? ERRORS[code].hint;
    this.retry = details.retry ?? ERRORS[code].retry;
    this.outcome = details.outcome ?? "refused";
    const { retryAfterMs, closeCode, envelopeId, missing } = details;
    // Only what is known: Node prints every member of an error that nobody catches.
    const known = Object.entries({ retryAfterMs, closeCode, envelopeId, missing }).filter(
      ([, value]) => value !== undefined,
    );
    Object.assign(this, Object.fromEntries(known));
    this.errors = details.errors ?? [];
  }
}

/** Close codes after which a connector does not reconnect. Source: docs/protocol.md#close-codes. */
const FINAL_CLOSES: ReadonlyMap<number, ErrorCode> = new Map([
  [1003, "policy"],
  [1007, "policy"],
  [1008, "policy"],
  [1009, "policy"],
  [4403, "key_revoked"],
  [4409, "superseded"],
]);

/** The error of a close after which a connector does not reconnect; undefined for every other close. */
export function finalClose(closeCode: number | undefined): RelayError | undefined {
  const code = closeCode === undefined ? undefined : FINAL_CLOSES.get(closeCode);
  return code === undefined ? undefined : new RelayError(code, { closeCode });
}

/** The advice of a relay on when to try again; undefined for what this version does not know. */
export function knownRetry(value: unknown): Retry | undefined {
  return RETRIES.find((retry) => retry === value);
}

/** The catalogue's advice for a code; as for `refused` for one that is not in it. */
export function retryOf(code: string): Retry {
  return ERRORS[isErrorCode(code) ? code : "refused"].retry;
}

/** Whether a hint is of one failure alone, and not the catalogue's of its code. */
export function isOwnHint({ code, hint }: { readonly code: string; readonly hint: string }): boolean {
  return !isErrorCode(code) || ERRORS[code].hint !== hint;
}

/** Whether it is one of the catalogue. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERRORS, code);
}

/** The catalogue's code for one that the relay sent. */
export function knownCode(code: string): ErrorCode {
  return Object.hasOwn(RELAY_ERRORS, code) ? (code as RelayErrorCode) : "refused";
}
