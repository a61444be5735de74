import { hash } from "node:crypto";
import type { DeliveryStatus, PresenceStatus } from "relay-protocol/contract/presence.ts";
import type { Place, SessionLimit } from "relay-protocol/contract/refusals.ts";
import type { SessionStatus } from "relay-protocol/contract/session.ts";
import type { VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { SESSION_ID_PATTERN, SESSION_ID_PREFIX, type UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";
import { CROCKFORD_DIGITS, crockford } from "relay-protocol/wire/ids.ts";
import { ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { TraceSpan } from "relay-runtime/tracing/span.ts";
import type { AgentPrincipal } from "../limits/principals.ts";
import type { CredentialRecord } from "../public-keys/credential-records.ts";
import { partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { DecidedSession, PendingSession, SessionState } from "../sessions/session-records.ts";

const GUARD_CHARACTERS = 16;
const SESSION_BYTES = 15;

/**
 * The digest that the replay guard stores for an envelope: 16 characters (96 bits) of the SHA-256 of `key_id`, `id`,
 * `ts` and `to`. Line feeds join the fields, and no field can contain one. With 96 bits no signer finds an envelope
 * whose digest equals another signer's. Such an envelope would make the other one look like a repeat.
 * Source: docs/protocol.md#replay.
 */
export function guardDigestOf({ key_id, id, ts, to }: Pick<UnsignedEnvelope, "key_id" | "id" | "ts" | "to">): string {
  return hash("sha256", `${key_id}\n${id}\n${ts}\n${to ?? ""}`, "base64url").slice(0, GUARD_CHARACTERS);
}

/**
 * Tells apart envelopes with one guard digest: only the identical envelope has the same text digest. Until acceptance
 * the guard holds it for a decision. The session record keeps it as `decided_by`.
 * @param text canonical text with `sig`.
 */
export function textDigestOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, GUARD_CHARACTERS);
}

/**
 * `ses_` and 26 digits of Crockford base32: 2 for the partition, 24 from the SHA-256 of the signed envelope. A repeat
 * of the envelope has the same session id. The hash covers the signature, so nobody can compute the id from guesses of
 * the other fields. Source: docs/protocol.md#sessions.
 * @param text canonical text with `sig`.
 */
export function sessionIdOf(text: string, partition: number): string {
  const prefix = `${CROCKFORD_DIGITS[partition >> 5]}${CROCKFORD_DIGITS[partition & 31]}`;
  return `${SESSION_ID_PREFIX}${prefix}${crockford(hash("sha256", text, "buffer").subarray(0, SESSION_BYTES))}`;
}

/** The partition that a session id names. @returns undefined if the text is no session id of these partitions. */
export function partitionOfSession(sessionId: string, partitions: number): number | undefined {
  if (!SESSION_ID_PATTERN.test(sessionId)) return undefined;
  const partition = CROCKFORD_DIGITS.indexOf(sessionId.charAt(4)) * 32 + CROCKFORD_DIGITS.indexOf(sessionId.charAt(5));
  return partition < partitions ? partition : undefined;
}

const SPAN_MS = REDIS_LIMITS.guardBucketMs;
/** Envelopes may use a bucket this long before its span and this long after it. Then Redis forgets the bucket. */
const MARGIN_MS = ENVELOPE_LIMITS.maxClockSkewMs + ENVELOPE_LIMITS.podClockToleranceMs;

/** Longest time in ms from now to the end of a bucket that can hold an envelope accepted now. */
export const GUARD_AHEAD_MS = 2 * MARGIN_MS + SPAN_MS;

/** The replay guard has one bucket for each span of `ts`. Source: docs/redis.md#keys. */
interface GuardBucket {
  readonly key: string;
  /** Unix ms: when Redis forgets the bucket. */
  readonly endsAt: number;
}

export function guardBucketOf(partition: number, item: Pick<AcceptanceItem, "envelope">): GuardBucket {
  const span = guardSpanOf(item);
  return { key: partitionKeys.seen(partition, span), endsAt: (span + 1) * SPAN_MS + MARGIN_MS };
}

/** The number of the span that holds `ts`. */
export function guardSpanOf({ envelope }: Pick<AcceptanceItem, "envelope">): number {
  return Math.floor(envelope.ts / SPAN_MS);
}

/** An idempotency claim of a gateway request. It holds digests only. Source: docs/protocol.md#http. */
export interface Claim {
  /** Digest of API key, endpoint and Idempotency-Key. */
  readonly digest: string;
  readonly bodyDigest: string;
}

/** A verified envelope that waits for acceptance. */
export interface AcceptanceItem extends AgentPrincipal {
  /** The signed fields. `text` also holds the signature. */
  readonly envelope: UnsignedEnvelope;
  readonly kind: VerifiedEnvelope["kind"];
  /** Canonical text with `sig`. */
  readonly text: string;
  readonly origin: "websocket" | "gateway";
  /** The sender's connection, or empty for the gateway. */
  readonly connection: string;
  /** Whether the connection is congested. Called when a register or heartbeat is sent to Redis. */
  readonly isCongested?: (() => boolean) | undefined;
  /** Set for an envelope that went through `prepare`. */
  readonly prepared?: Prepared | undefined;
  /** Set for a register or heartbeat that a credential's key signed. */
  readonly credential?: KeptCredential | undefined;
  /**
   * Heartbeats only: whom the agent accepts envelopes from (limits/principals.ts). Undefined if the connection does not
   * know.
   */
  readonly acceptFrom?: string | undefined;
  readonly claim?: Claim | undefined;
  /** Session requests only: true if the sender's principal also answers for the target. */
  readonly isWithinPrincipal?: boolean | undefined;
  /** Parent span of the acceptance. Set if the trace is sampled. */
  readonly span?: TraceSpan | undefined;
  /** Called once with the outcome. */
  readonly done: (acceptance: Acceptance) => void;
  /**
   * True if nobody waits for the outcome any more. The acceptor drops such an item before it sends it.
   * Source: docs/protocol.md#frames.
   */
  readonly abandoned?: () => boolean;
}

/** Called for every envelope, so it must be cheap. */
export interface AcceptanceObserver {
  /** Redis answered a call that carried `size` envelopes. */
  readonly called: (size: number) => void;
  readonly settled: (item: Pick<AcceptanceItem, "envelope">, acceptance: Acceptance) => void;
}

/** Facts that Redis keeps about an agent's credentials. */
export interface KeptCredential {
  /** Unix ms: when the last of the agent's credentials ends. */
  readonly expiresAt: number;
  /** Set for a register: the credential that it presents. */
  readonly presented?: CredentialRecord | undefined;
}

/** An item with the values that acceptance derives from it. */
export interface PlacedItem extends AcceptanceItem {
  readonly partition: number;
  /** Digest in the replay guard. */
  readonly digest: string;
  /** The session that a `session.*` envelope opens or decides. */
  readonly sessionId: string;
  /** Span of the acceptance: child of `span`, parent of the delivery. */
  readonly acceptSpan?: TraceSpan | undefined;
}

/** Results of `prepare` that acceptance needs from other partitions. */
export type Prepared = PreparedDecision | PreparedRequest | PreparedMessage;

/** A decision that is in effect. It decides nothing if the guard already knows its digest. */
export interface PreparedDecision {
  readonly kind: "decision";
  readonly state: SessionState;
  /** Unix ms as a text. Empty if nothing was decided. */
  readonly decidedAt: string;
}

/**
 * Counts in the other partitions, as bounds of a session request. `pendingElsewhere` counts the principal's pending
 * sessions, `pendingOfRequesterElsewhere` the requester's as an agent of an issuer. The `opened…` counts cover the last
 * minute.
 */
export interface PreparedRequest {
  readonly kind: "request";
  readonly pendingElsewhere: number;
  readonly pendingOfRequesterElsewhere: number;
  readonly openedElsewhere: number;
  readonly openedByPrincipalElsewhere: number;
}

/** A message whose claim is bound to its body. */
interface PreparedMessage {
  readonly kind: "message";
}

/** Outcome of one envelope. For a `duplicate`, a repeat, nothing was delivered or counted. */
export type Acceptance =
  | PresenceAcceptance
  | DeliveryAcceptance
  | { readonly outcome: "replayed"; readonly first: FirstAnswer }
  | NotRegistered
  | Unavailable
  | RateLimited
  | { readonly outcome: AcceptanceRefusal };

export type AcceptanceRefusal =
  | "abandoned"
  | "agents_per_key"
  | "clock_skew"
  | "not_accepted_by_target"
  | "over_capacity"
  | "reused"
  | "unknown_session"
  | "not_your_session"
  | "session_closed";

/**
 * Redis gave no usable answer, so the envelope may have been accepted. Or the pod that owns a heartbeat's agent is not
 * heard now.
 */
export interface Unavailable {
  readonly outcome: "unavailable";
  /**
   * Set if the envelope was certainly not accepted: it was never sent, or Redis came to it too late, or Redis said so.
   */
  readonly done?: false;
  /** The part of Redis that is out of reach, if other parts are not. */
  readonly place?: Place;
}

export const UNDONE: Unavailable = { outcome: "unavailable", done: false };

/** A session request beyond a bound. Nothing was done. */
interface RateLimited {
  readonly outcome: "rate_limited";
  readonly limit: SessionLimit;
  readonly retryAfterMs: number;
}

/** A heartbeat of an agent that another, live connection owns. */
interface NotRegistered {
  readonly outcome: "not_registered";
  /** Epoch of the owner. */
  readonly epoch: number;
}

export interface PresenceAcceptance {
  readonly outcome: "accepted" | "duplicate";
  readonly about: "presence";
  readonly status: PresenceStatus;
  /** Unix ms, or null when the agent was not seen. */
  readonly lastSeen: number | null;
  /** `lastSeen` in monotonic ms of this process, or earlier. */
  readonly heardAt: number | null;
  /** Epoch under which this connection owns the agent, or null if it does not. */
  readonly epoch: number | null;
  /** Sessions that the agent has to decide, oldest first. Filled when the agent comes online. */
  readonly pending: readonly PendingSession[];
  /**
   * Decisions on the agent's requests from while it was not online, oldest first. Filled when the agent comes online.
   */
  readonly decided: readonly DecidedSession[];
  /**
   * Whom the agent accepts envelopes from (limits/principals.ts). Set if a heartbeat took the agent and its connection
   * does not know.
   */
  readonly acceptFrom?: string | undefined;
}

export interface DeliveryAcceptance {
  readonly outcome: "accepted" | "duplicate";
  readonly about: "delivery";
  readonly delivery: DeliveryStatus;
  readonly sessionId: string | null;
  /** Null if `sessionId` is null. */
  readonly sessionStatus: SessionStatus | null;
  /** Unix ms by the clock of Redis. */
  readonly acceptedAt: number;
}

/** Answer to the first request with an Idempotency-Key. */
export interface FirstAnswer {
  readonly envelopeId: string;
  readonly delivery: DeliveryStatus;
  readonly sessionId: string | null;
  readonly acceptedAt: number;
}
