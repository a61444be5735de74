import type { UnsignedEnvelope } from "protocol/contract/envelope.ts";
import type { DeliveryStatus, PresenceStatus } from "protocol/contract/presence.ts";
import type { SessionStatus } from "protocol/contract/session.ts";
import type { VerifiedEnvelope } from "protocol/intake/steps.ts";
import type { PendingSession } from "../records/pending-session.ts";

/** The vocabulary of acceptance: what goes into the one atomic step, and what comes out of it. */

/** An idempotency claim of a gateway request; digests only. Source: docs/protocol.md#http. */
export interface Claim {
  /** Names API key, endpoint and Idempotency-Key. */
  readonly digest: string;
  readonly bodyDigest: string;
}

/** A verified envelope on its way to acceptance. */
export interface AcceptanceItem {
  /** What was signed; the signature itself stands in `text`. */
  readonly envelope: UnsignedEnvelope;
  readonly kind: VerifiedEnvelope["kind"];
  /** Canonical text with `sig`. */
  readonly text: string;
  readonly origin: "websocket" | "gateway";
  /** The connection that it came in on; empty for the gateway. */
  readonly connection: string;
  /** Who answers for it, as limits count: `key:` and the id of the signing key. */
  readonly principal?: string;
  /** True when the principal may bring agents that nobody listed one by one: those are counted. */
  readonly hasNamespace?: boolean;
  readonly claim?: Claim;
  /** Called once with the outcome. */
  readonly done: (acceptance: Acceptance) => void;
  /** True when nobody waits any more: the item is dropped before it is sent. Source: docs/protocol.md#frames. */
  readonly abandoned?: () => boolean;
}

/** An item with what acceptance derives from it. */
export interface PlacedItem extends AcceptanceItem {
  readonly partition: number;
  /** What the replay guard knows it by. */
  readonly digest: string;
  /** The session that a `session.*` envelope opens or decides. */
  readonly sessionId: string;
}

/** Outcome of one envelope. `duplicate` is a repeat: nothing was delivered or counted. */
export type Acceptance =
  | PresenceAcceptance
  | DeliveryAcceptance
  | { readonly outcome: "replayed"; readonly first: FirstAnswer }
  | NotRegistered
  | Unavailable
  | { readonly outcome: AcceptanceRefusal };

export type AcceptanceRefusal =
  | "abandoned"
  | "agents_per_key"
  | "clock_skew"
  | "over_capacity"
  | "reused"
  | "unknown_session"
  | "not_your_session"
  | "session_closed";

/** There was no answer of Redis that could be used: the envelope may have been accepted all the same. */
export interface Unavailable {
  readonly outcome: "unavailable";
  /** There when the envelope was not sent to Redis at all. */
  readonly sent?: false;
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
  /** Epoch under which this connection owns the agent, or null when it does not. */
  readonly epoch: number | null;
  /** What the agent has to decide, oldest first; told to a connection when it comes to own the agent. */
  readonly pending: readonly PendingSession[];
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
