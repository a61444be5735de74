import { AGENT_ID } from "./agent-id.ts";
import { knownRetry, type Retry } from "./errors.ts";
import type { FieldError } from "./field-errors.ts";
import {
  ANNOUNCED_DEFAULTS,
  MAX_ASKED_WAIT_MS,
  MAX_FIELD_ERRORS,
  MAX_HEARTBEAT_INTERVAL_MS,
  MAX_IN_FLIGHT,
  MAX_TIME_MS,
  MIN_HEARTBEAT_INTERVAL_MS,
  RETRY_AFTER_MS,
} from "./limits.ts";
import { parseJson } from "./parse-json.ts";
import { saidText } from "./said-text.ts";
import { sessionIdOf } from "./session-id.ts";
import type { DecidedSession, Notice, PendingSession, SessionStatus, TargetDelivery } from "./types.ts";

/** Frames of the relay, parsed so that no input can break the connector. Source: docs/protocol.md#frames. */

export interface HelloFrame {
  readonly frame: "hello";
  /** Undefined where it is no id. */
  readonly connectionId: string | undefined;
  /** Epoch milliseconds. */
  readonly serverTime: number | undefined;
  readonly heartbeatIntervalMs: number;
  readonly maxClockSkewMs: number;
  /** Envelopes without an answer that the connector may have. */
  readonly maxInFlight: number;
  /** Of the connector that the relay hands out. */
  readonly connectorVersion: string | undefined;
}

export interface AckFrame {
  readonly frame: "ack";
  readonly envelopeId: string;
  readonly duplicate: boolean;
  readonly delivery: TargetDelivery;
  readonly sessionId: string;
  readonly sessionStatus: SessionStatus;
}

export interface ErrorFrame {
  readonly frame: "error";
  readonly code: string;
  readonly message: string | undefined;
  readonly hint: string | undefined;
  readonly retry: Retry | undefined;
  readonly errors: readonly FieldError[];
  readonly envelopeId: string | undefined;
  readonly retryAfterMs: number;
  readonly serverTime: number | undefined;
}

export interface DeliverFrame {
  readonly frame: "deliver";
  readonly envelope: unknown;
  readonly sessionId: string | undefined;
}

export interface NoticeFrame {
  readonly frame: "notice";
  readonly notice: Notice;
}

export type Frame = HelloFrame | AckFrame | ErrorFrame | DeliverFrame | NoticeFrame;

type Members = Readonly<Record<string, unknown>>;

/** The frame; undefined for one that this version does not know. Never throws. */
export function readFrame(text: unknown): Frame | undefined {
  const members = membersOf(parsed(text));
  if (members.frame === "hello") return helloOf(members);
  if (members.frame === "ack") return ackOf(members);
  if (members.frame === "error") return errorFrameOf(members);
  if (members.frame === "deliver") {
    return { frame: "deliver", envelope: members.envelope, sessionId: sessionIdOf(members.session_id) };
  }
  const notice = members.frame === "notice" ? noticeOf(members) : undefined;
  return notice && { frame: "notice", notice };
}

function helloOf({ connection_id, server_time, limits, connector_version }: Members): HelloFrame {
  const { heartbeat_interval_ms, max_clock_skew_ms, max_unacknowledged } = membersOf(limits);
  const intervalMs = positive(heartbeat_interval_ms) ?? ANNOUNCED_DEFAULTS.heartbeatIntervalMs;
  return {
    frame: "hello",
    connectionId: connectionIdOf(connection_id),
    serverTime: timeOf(server_time),
    heartbeatIntervalMs: Math.min(Math.max(intervalMs, MIN_HEARTBEAT_INTERVAL_MS), MAX_HEARTBEAT_INTERVAL_MS),
    maxClockSkewMs: positive(max_clock_skew_ms) ?? ANNOUNCED_DEFAULTS.maxClockSkewMs,
    maxInFlight: Math.min(positive(max_unacknowledged) ?? MAX_IN_FLIGHT, MAX_IN_FLIGHT),
    connectorVersion: textOf(connector_version),
  };
}

/** It is signed as it came: what could not be signed would end the connector. */
function connectionIdOf(value: unknown): string | undefined {
  const id = textOf(value);
  return id !== undefined && /^[\w.:-]{1,128}$/.test(id) ? id : undefined;
}

function ackOf({ envelope_id, duplicate, target_delivery, session_id, session_status }: Members): AckFrame {
  const { status, can_deliver_realtime } = membersOf(target_delivery);
  return {
    frame: "ack",
    envelopeId: textOf(envelope_id) ?? "",
    duplicate: duplicate === true,
    delivery: {
      status: (saidText(status) ?? "not_seen") as TargetDelivery["status"],
      canDeliverRealtime: can_deliver_realtime === true,
    },
    sessionId: sessionIdOf(session_id) ?? "",
    sessionStatus: (saidText(session_status) ?? "") as SessionStatus,
  };
}

function errorFrameOf(members: Members): ErrorFrame {
  const { code, message, hint, retry, errors, envelope_id, retry_after_ms, server_time } = members;
  return {
    frame: "error",
    code: textOf(code) ?? "",
    message: saidText(message),
    hint: saidText(hint),
    retry: knownRetry(retry),
    errors: fieldErrorsIn(errors),
    envelopeId: textOf(envelope_id),
    retryAfterMs: waitOf(retry_after_ms) ?? RETRY_AFTER_MS,
    serverTime: timeOf(server_time),
  };
}

function noticeOf(members: Members): Notice | undefined {
  const { notice, sessions, total, reconnect_after_ms, envelopes_per_second, bytes_per_second } = members;
  if (notice === "superseded") return { kind: "superseded" };
  if (notice === "released") return { kind: "released", reason: saidText(members.reason) ?? "" };
  if (notice === "slow_down") {
    const envelopesPerSecond = countOf(envelopes_per_second) ?? 0;
    return { kind: "slow_down", envelopesPerSecond, bytesPerSecond: countOf(bytes_per_second) ?? 0 };
  }
  if (notice === "draining") return { kind: "draining", reconnectAfterMs: waitOf(reconnect_after_ms) ?? 0 };
  if (!Array.isArray(sessions)) return undefined;
  if (notice === "decided_sessions") return { kind: "decided_sessions", sessions: sessions.flatMap(decidedOf) };
  if (notice !== "pending_sessions") return undefined;
  const pending = sessions.flatMap(pendingOf);
  return { kind: "pending_sessions", total: countOf(total) ?? pending.length, sessions: pending };
}

/** Empty for one whose ids or times are none: ids are remembered, and whoever writes a date as text would fail on it. */
function pendingOf(session: unknown): PendingSession[] {
  const { session_id, requester: requesting, created_at_iso, expires_at_iso } = membersOf(session);
  const [sessionId, requester] = [sessionIdOf(session_id), agentIdOf(requesting)];
  const [createdAt, expiresAt] = [dateOf(created_at_iso), dateOf(expires_at_iso)];
  if (sessionId === undefined || requester === undefined) return [];
  if (createdAt === undefined || expiresAt === undefined) return [];
  return [{ sessionId, requester, createdAt, expiresAt }];
}

/** Empty as for pendingOf. */
function decidedOf(session: unknown): DecidedSession[] {
  const { session_id, target: deciding, status: said, decided_at_iso } = membersOf(session);
  const [sessionId, target, decidedAt] = [sessionIdOf(session_id), agentIdOf(deciding), dateOf(decided_at_iso)];
  if (sessionId === undefined || target === undefined || decidedAt === undefined) return [];
  return [{ sessionId, target, status: said === "approved" ? "approved" : "rejected", decidedAt }];
}

function agentIdOf(value: unknown): string | undefined {
  return typeof value === "string" && AGENT_ID.test(value) ? value : undefined;
}

function dateOf(value: unknown): Date | undefined {
  const date = new Date(textOf(value) ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

function parsed(text: unknown): unknown {
  try {
    return parseJson(String(text));
  } catch {
    return undefined;
  }
}

/** The members of a JSON object; empty for any other value. */
export function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The member `errors` of a refusal; empty for what is none. Source: docs/protocol.md#errors. */
export function fieldErrorsIn(value: unknown): readonly FieldError[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_FIELD_ERRORS).flatMap((error) => {
    const [field, message] = [saidText(membersOf(error).field), saidText(membersOf(error).message)];
    return field === undefined || message === undefined ? [] : [{ field, message }];
  });
}

/** A wait that a relay asks for, in whole milliseconds that a timer can hold; undefined for what is none. */
export function waitOf(value: unknown): number | undefined {
  const ms = positive(value);
  return ms === undefined ? undefined : Math.min(Math.ceil(ms), MAX_ASKED_WAIT_MS);
}

/** Epoch milliseconds; undefined for what is no time. */
function timeOf(value: unknown): number | undefined {
  const ms = countOf(value);
  return ms !== undefined && ms <= MAX_TIME_MS ? ms : undefined;
}

/** A whole number of 0 or more that a double holds exactly. */
function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function positive(value: unknown): number | undefined {
  const number = numberOf(value);
  return number !== undefined && number > 0 ? number : undefined;
}
