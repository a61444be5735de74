import type { DeliveryStatus } from "relay-protocol/contract/presence.ts";
import { PENDING, type ProofSource, type SessionStatus, type TargetDecision } from "relay-protocol/contract/session.ts";
import { SESSION_ID_PREFIX } from "relay-protocol/wire/envelope.ts";
import { agentNamed } from "relay-protocol/wire/ids.ts";

/** A kept record of an accepted session request. Source: docs/reports.md#session-proofs. */
export interface SessionProof {
  readonly sessionId: string;
  readonly requester: string;
  readonly target: string;
  /** Unix ms. */
  readonly acceptedAt: number;
  readonly targetStatus: DeliveryStatus;
  readonly source: ProofSource;
  /** True if requester and target belong to one key of the keys file, or to one issuer. */
  readonly samePrincipal: boolean;
}

/**
 * Parses `session requester target accepted_at status source[ within]`.
 * Source: shared/window/src/lua/accept/sessions_and_claims.lua.
 */
export function parseSessionProof(record: string): SessionProof {
  const [sessionId, requester, target, acceptedAt, targetStatus, source, within] = record.split(" ") as [
    ...[string, string, string, string],
    DeliveryStatus,
    ProofSource,
    string?,
  ];
  const samePrincipal = within !== undefined;
  return { sessionId, requester, target, acceptedAt: Number(acceptedAt), targetStatus, source, samePrincipal };
}

const MINUTE_MS = 60_000;

/** State of a session in scripts (lua/lib/session_records.lua): pending, approved, rejected or expired. */
export type SessionState = "p" | "a" | "r" | "e";

const DECISIONS: Readonly<Record<SessionState, TargetDecision>> = {
  p: "pending",
  a: "approved",
  r: "rejected",
  e: "expired",
};
const DELIVERIES: Readonly<Record<string, DeliveryStatus>> = { o: "online", s: "stale", n: "not_seen" };

/** The state as one word. */
export function decisionOf(state: SessionState): TargetDecision {
  return DECISIONS[state];
}

/** The state as clients see it. */
export function statusOf(state: SessionState): SessionStatus {
  const decision = DECISIONS[state];
  return decision === "pending" ? PENDING : decision;
}

/** A session. Times are Unix ms. */
export interface SessionRecord {
  readonly delivery: DeliveryStatus;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly requester: string;
  readonly target: string;
  readonly decidedAt: number | null;
}

/** Parses `status delivery created_at ttl requester target`. A decided session also has ` decided_at decided_by`. */
export function parseSession(record: string): SessionRecord {
  const words = record.split(" ") as [string, string, string, string, string, string, string?];
  const [, delivery, createdAt, ttl, requester, target, decidedAt] = words;
  return {
    delivery: DELIVERIES[delivery] as DeliveryStatus,
    createdAt: Number(createdAt),
    expiresAt: Number(createdAt) + Number(ttl) * MINUTE_MS,
    requester: agentNamed(requester),
    target: agentNamed(target),
    decidedAt: decidedAt === undefined ? null : Number(decidedAt),
  };
}

/** A session that its target has not decided yet. Times are Unix ms. */
export interface PendingSession {
  readonly sessionId: string;
  readonly requester: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Parses `session created_at ttl principal requester`. */
export function parsePendingSession(line: string): PendingSession {
  const [name, createdAt, ttl, , requester] = line.split(" ") as [string, string, string, string, string];
  return {
    sessionId: SESSION_ID_PREFIX + name,
    requester: agentNamed(requester),
    createdAt: Number(createdAt),
    expiresAt: Number(createdAt) + Number(ttl) * MINUTE_MS,
  };
}

/** Parses a target's last proof: `accepted_at source requester session[ within]`. */
export function parseTargetProof(line: string, target: string): SessionProof {
  const [acceptedAt, source, requester, name, within] = line.split(" ") as [string, string, string, string, string?];
  return {
    sessionId: SESSION_ID_PREFIX + name,
    requester: agentNamed(requester),
    target,
    acceptedAt: Number(acceptedAt),
    targetStatus: "online",
    source: source === "g" ? "simple_session_api" : "websocket_envelope",
    samePrincipal: within !== undefined,
  };
}

/** A decision that was made while its requester was not online. */
export interface DecidedSession {
  readonly sessionId: string;
  readonly status: "approved" | "rejected";
  readonly decidedAt: number;
  readonly target: string;
}

/** Parses `session status decided_at target`. */
export function parseDecidedSession(member: string): DecidedSession {
  const [name, state, decidedAt, target] = member.split(" ") as [string, string, string, string];
  return {
    sessionId: SESSION_ID_PREFIX + name,
    status: state === "a" ? "approved" : "rejected",
    decidedAt: Number(decidedAt),
    target: agentNamed(target),
  };
}
