import { hash } from "node:crypto";
import type { DeliveryStatus, PresenceStatus } from "relay-protocol/contract/presence.ts";
import type { Place, SessionLimit } from "relay-protocol/contract/refusals.ts";
import type { SessionStatus } from "relay-protocol/contract/session.ts";
import type { VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { SESSION_ID_PATTERN, SESSION_ID_PREFIX, type UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";
import { CROCKFORD_DIGITS, crockford } from "relay-protocol/wire/ids.ts";
import { ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { TraceSpan } from "relay-runtime/tracing/span.ts";
import type { AgentBringer } from "../limits/principals.ts";
import type { CredentialRecord } from "../presence/credentials.ts";
import { partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import type { DecidedSession, PendingSession, SessionState } from "../sessions/records.ts";

const GUARD_CHARACTERS = 16;
const SESSION_BYTES = 15;

/**
 * What the replay guard stores of an envelope: 16 characters (96 bits) of the SHA-256 of `key_id`, `id`, `ts` and `to`, joined
 * with line feeds, which none of them can contain. With 96 bits no signer finds an envelope of its own that has the digest of
 * another's, and would make that one pass for a repeat. Source: docs/protocol.md#replay.
 */
export function guardDigestOf({ key_id, id, ts, to }: Pick<UnsignedEnvelope, "key_id" | "id" | "ts" | "to">): string {
  return hash("sha256", `${key_id}\n${id}\n${ts}\n${to ?? ""}`, "base64url").slice(0, GUARD_CHARACTERS);
}

/**
 * What the replay guard tells a decision by until it is accepted, and its session by whom it was decided: of all envelopes
 * with one guard digest only the very same one has the same digest of its text. @param text canonical text with `sig`.
 */
export function textDigestOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, GUARD_CHARACTERS);
}

/**
 * `ses_` and 26 digits of Crockford base32: 2 for the partition, 24 from the SHA-256 of the envelope as it was signed. The
 * same envelope sent again has the same session id. The signature is part of what is hashed: who only guesses the other
 * fields of an envelope cannot compute its session's id. Source: docs/protocol.md#sessions.
 * @param text canonical text with `sig`.
 */
export function sessionIdOf(text: string, partition: number): string {
  const prefix = `${CROCKFORD_DIGITS[partition >> 5]}${CROCKFORD_DIGITS[partition & 31]}`;
  return `${SESSION_ID_PREFIX}${prefix}${crockford(hash("sha256", text, "buffer").subarray(0, SESSION_BYTES))}`;
}

/** The partition that a session id names, or undefined when it is no session id of these partitions. */
export function partitionOfSession(sessionId: string, partitions: number): number | undefined {
  if (!SESSION_ID_PATTERN.test(sessionId)) return undefined;
  const partition = CROCKFORD_DIGITS.indexOf(sessionId.charAt(4)) * 32 + CROCKFORD_DIGITS.indexOf(sessionId.charAt(5));
  return partition < partitions ? partition : undefined;
}

/** The buckets of the replay guard, each of a span of `ts`. Source: docs/redis.md#keys. */

const SPAN_MS = REDIS_LIMITS.guardBucketMs;
/** How long a bucket is kept before and after its span. */
const MARGIN_MS = ENVELOPE_LIMITS.maxClockSkewMs + ENVELOPE_LIMITS.podClockToleranceMs;

/** How far ahead the end of a bucket may lie that can hold an envelope now. */
export const GUARD_AHEAD_MS = 2 * MARGIN_MS + SPAN_MS;

export interface GuardBucket {
  readonly key: string;
  /** When it is forgotten: Unix ms. */
  readonly endsAt: number;
}

export function guardBucketOf(partition: number, item: Pick<AcceptanceItem, "envelope">): GuardBucket {
  const span = guardSpanOf(item);
  return { key: partitionKeys.seen(partition, span), endsAt: (span + 1) * SPAN_MS + MARGIN_MS };
}

/** The span that `ts` lies in. */
export function guardSpanOf({ envelope }: Pick<AcceptanceItem, "envelope">): number {
  return Math.floor(envelope.ts / SPAN_MS);
}

/** The vocabulary of acceptance: what goes into the one atomic step, and what comes out of it. */

/** An idempotency claim of a gateway request; digests only. Source: docs/protocol.md#http. */
export interface Claim {
  /** Names API key, endpoint and Idempotency-Key. */
  readonly digest: string;
  readonly bodyDigest: string;
}

/** A verified envelope on its way to acceptance. */
export interface AcceptanceItem extends AgentBringer {
  /** What was signed; the signature itself stands in `text`. */
  readonly envelope: UnsignedEnvelope;
  readonly kind: VerifiedEnvelope["kind"];
  /** Canonical text with `sig`. */
  readonly text: string;
  readonly origin: "websocket" | "gateway";
  /** The connection that it came in on; empty for the gateway. */
  readonly connection: string;
  /** Whether that connection is congested, asked when a register or heartbeat is sent to Redis. */
  readonly isCongested?: (() => boolean) | undefined;
  /** There for an envelope that `prepare` was asked for. */
  readonly prepared?: Prepared | undefined;
  /** There for a register or heartbeat under the key of a credential. */
  readonly credential?: KeptCredential | undefined;
  /** Of a heartbeat: whom its agent accepts envelopes from (limits/principals.ts), where its connection knows. */
  readonly acceptFrom?: string | undefined;
  readonly claim?: Claim | undefined;
  /** Its principal speaks for the target, too; asked of a session request. */
  readonly isWithinPrincipal?: boolean | undefined;
  /** Of what brought it, where its trace is sampled. */
  readonly span?: TraceSpan | undefined;
  /** Called once with the outcome. */
  readonly done: (acceptance: Acceptance) => void;
  /** True when nobody waits any more: the item is dropped before it is sent. Source: docs/protocol.md#frames. */
  readonly abandoned?: () => boolean;
}

/** Is called for every envelope, so it must be cheap. */
export interface AcceptanceObserver {
  /** Redis answered a call that carried `size` envelopes. */
  readonly called: (size: number) => void;
  readonly settled: (item: Pick<AcceptanceItem, "envelope">, acceptance: Acceptance) => void;
}

/** What is kept of a credential, for those who look its agent up. */
export interface KeptCredential {
  /** Unix ms: when the last of the agent's credentials ends. */
  readonly expiresAt: number;
  /** There for a register, which brings it. */
  readonly presented?: CredentialRecord | undefined;
}

/** An item with what acceptance derives from it. */
export interface PlacedItem extends AcceptanceItem {
  readonly partition: number;
  /** What the replay guard knows it by. */
  readonly digest: string;
  /** The session that a `session.*` envelope opens or decides. */
  readonly sessionId: string;
  /** Of its acceptance, a child of what brought it; its delivery's parent. */
  readonly acceptSpan?: TraceSpan | undefined;
}

/** What an envelope brings from other partitions than that of its acceptance. */
export type Prepared = PreparedDecision | PreparedRequest | PreparedMessage;

/** A decision, in effect, or one that decides nothing because the guard knows its digest. */
export interface PreparedDecision {
  readonly kind: "decision";
  readonly state: SessionState;
  /** Unix ms as a text; empty where nothing is decided. */
  readonly decidedAt: string;
}

/**
 * What a request's principal, and its requester as an agent of an issuer, have pending in other partitions, and what requester
 * and principal opened there within a minute.
 */
export interface PreparedRequest {
  readonly kind: "request";
  readonly pendingElsewhere: number;
  readonly pendingOfRequesterElsewhere: number;
  readonly openedElsewhere: number;
  readonly openedByPrincipalElsewhere: number;
}

/** A message whose claim is bound to its body. */
export interface PreparedMessage {
  readonly kind: "message";
}

/** Outcome of one envelope. `duplicate` is a repeat: nothing was delivered or counted. */
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
 * There was no answer of Redis that could be used: the envelope may have been accepted all the same. Or the pod that has the agent
 * of a heartbeat is not heard now.
 */
export interface Unavailable {
  readonly outcome: "unavailable";
  /** There when it certainly was not: it was not sent to Redis at all, or Redis came to it too late, or says so. */
  readonly done?: false;
  /** The part of Redis that is out of reach, where others answer. */
  readonly place?: Place;
}

export const UNDONE: Unavailable = { outcome: "unavailable", done: false };

/** A session request beyond a bound; nothing was done. */
export interface RateLimited {
  readonly outcome: "rate_limited";
  readonly limit: SessionLimit;
  readonly retryAfterMs: number;
}

/** A heartbeat of an agent that another, live connection owns. */
export interface NotRegistered {
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
  /** The same in monotonic ms of this process, or before. */
  readonly heardAt: number | null;
  /** Epoch under which this connection owns the agent, or null when it does not. */
  readonly epoch: number | null;
  /** What the agent has to decide, oldest first; told when it comes online. */
  readonly pending: readonly PendingSession[];
  /** What was decided of its requests while it was not online, oldest first; told when it comes online. */
  readonly decided: readonly DecidedSession[];
  /** Whom the agent accepts envelopes from (limits/principals.ts); told a heartbeat that took it and does not know. */
  readonly acceptFrom?: string | undefined;
}

export interface DeliveryAcceptance {
  readonly outcome: "accepted" | "duplicate";
  readonly about: "delivery";
  readonly delivery: DeliveryStatus;
  readonly sessionId: string | null;
  /** Null when `sessionId` is. */
  readonly sessionStatus: SessionStatus | null;
  /** Unix ms by the clock of Redis. */
  readonly acceptedAt: number;
}

/** The answer that the first request with an Idempotency-Key got. */
export interface FirstAnswer {
  readonly envelopeId: string;
  readonly delivery: DeliveryStatus;
  readonly sessionId: string | null;
  readonly acceptedAt: number;
}
