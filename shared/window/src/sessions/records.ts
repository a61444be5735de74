import type { DeliveryStatus } from "relay-protocol/contract/presence.ts";
import { PENDING, type ProofSource, type SessionStatus, type TargetDecision } from "relay-protocol/contract/session.ts";
import { SESSION_ID_PREFIX } from "relay-protocol/wire/envelope.ts";
import { agentNamed } from "relay-protocol/wire/ids.ts";

/** An accepted session request, as it is retained. Source: docs/reports.md#session-proofs. */
export interface SessionProof {
  readonly sessionId: string;
  readonly requester: string;
  readonly target: string;
  /** Unix ms. */
  readonly acceptedAt: number;
  readonly targetStatus: DeliveryStatus;
  readonly source: ProofSource;
  /** Requester and target answer to one key of the keys file, or to one issuer. */
  readonly samePrincipal: boolean;
}

/** Reads `session requester target accepted_at status source[ within]`. Source: shared/window/src/lua/accept/sessions.lua. */
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

/** The records of sessions. Times are Unix ms. Source: shared/window/src/lua/lib/session_records.lua. */

const MINUTE_MS = 60_000;

/** A session's state as scripts say it. */
export type SessionState = "p" | "a" | "r" | "e";

const DECISIONS: Readonly<Record<SessionState, TargetDecision>> = {
  p: "pending",
  a: "approved",
  r: "rejected",
  e: "expired",
};
const DELIVERIES: Readonly<Record<string, DeliveryStatus>> = { o: "online", s: "stale", n: "not_seen" };

/** A state in one word. */
export function decisionOf(state: SessionState): TargetDecision {
  return DECISIONS[state];
}

/** A state as clients are told it. */
export function statusOf(state: SessionState): SessionStatus {
  const decision = DECISIONS[state];
  return decision === "pending" ? PENDING : decision;
}

export interface SessionRecord {
  readonly delivery: DeliveryStatus;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly requester: string;
  readonly target: string;
  readonly decidedAt: number | null;
}

/** Reads `status delivery created_at ttl requester target` and, of a decided one, ` decided_at decided_by`. */
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

/** A session that its target has not decided yet. */
export interface PendingSession {
  readonly sessionId: string;
  readonly requester: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Reads `session created_at ttl principal requester`. */
export function parsePendingSession(line: string): PendingSession {
  const [name, createdAt, ttl, , requester] = line.split(" ") as [string, string, string, string, string];
  return {
    sessionId: SESSION_ID_PREFIX + name,
    requester: agentNamed(requester),
    createdAt: Number(createdAt),
    expiresAt: Number(createdAt) + Number(ttl) * MINUTE_MS,
  };
}

/** Reads the proof that a target has of its own, `accepted_at source requester session[ within]`. */
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

/** A decision whose requester was not online. */
export interface DecidedSession {
  readonly sessionId: string;
  readonly status: "approved" | "rejected";
  readonly decidedAt: number;
  readonly target: string;
}

/** Reads `session status decided_at target`. */
export function parseDecidedSession(member: string): DecidedSession {
  const [name, state, decidedAt, target] = member.split(" ") as [string, string, string, string];
  return {
    sessionId: SESSION_ID_PREFIX + name,
    status: state === "a" ? "approved" : "rejected",
    decidedAt: Number(decidedAt),
    target: agentNamed(target),
  };
}
