import type { AnnouncedLimits, ErrorFrame, NoticeFrame, PresenceAck } from "relay-protocol/contract/frames.ts";
import { notKept } from "relay-protocol/contract/not-kept.ts";
import type { DecidedSession, PendingSession } from "relay-protocol/contract/session.ts";
import type { ReleaseReason } from "relay-protocol/wire/credential.ts";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import { ERRORS, type ErrorCode, type FieldError } from "relay-protocol/wire/errors.ts";
import type { DeliveryAcceptance, PresenceAcceptance } from "relay-window/acceptance/acceptance.ts";

/**
 * The frames that the relay sends, as JSON texts. `frame` is always the first member. Source: docs/protocol.md#frames.
 */

/** The facts that `hello` tells about the pod. */
export interface Greeting {
  readonly limits: AnnouncedLimits;
  /** The version of the connector that the relay hands out. Undefined if it hands out none. */
  readonly connectorVersion?: string | undefined;
}

export function helloFrame(connectionId: string, now: number, { limits, connectorVersion }: Greeting): string {
  return JSON.stringify({
    frame: "hello",
    service: "agent-relay",
    connection_id: connectionId,
    server_time: now,
    limits,
    connector_version: connectorVersion,
  });
}

/** @param credentialEnd Unix ms: when the agent's last credential ends. Undefined if the agent's key is listed. */
export function presenceAck(envelope: Envelope, acceptance: PresenceAcceptance, credentialEnd?: number): string {
  const { outcome, status, lastSeen } = acceptance;
  const presence: PresenceAck["presence"] = {
    agent_id: envelope.from,
    status,
    last_seen_iso: lastSeen === null ? null : new Date(lastSeen).toISOString(),
  };
  const end =
    credentialEnd === undefined ? "" : `,"credential_expires_at_iso":"${new Date(credentialEnd).toISOString()}"`;
  return ack(envelope, outcome, `"presence":${JSON.stringify(presence)}${end}`);
}

/** @param baseUrl where the sender can look up a target that was not online. */
export function deliveryAck(envelope: Envelope, acceptance: DeliveryAcceptance, baseUrl: string): string {
  const { outcome, delivery, sessionId, sessionStatus } = acceptance;
  const isOnline = delivery === "online";
  const target = `"target_delivery":{"status":"${delivery}","can_deliver_realtime":${isOnline}}`;
  const next = isOnline ? "" : nextOf(envelope, outcome, baseUrl);
  if (sessionId === null) return ack(envelope, outcome, target + next);
  return ack(envelope, outcome, `${target},"session_id":"${sessionId}","session_status":"${sessionStatus}"${next}`);
}

/**
 * The next step for the sender of an undelivered envelope. A duplicate gets none: its first delivery may have reached
 * the target. A decision gets none: its session keeps it.
 */
function nextOf({ type, to }: Envelope, outcome: DeliveryAcceptance["outcome"], baseUrl: string): string {
  if (outcome === "duplicate" || type === "session.approve" || type === "session.reject") return "";
  const what = type === "session.request" ? "session_request" : "message";
  return `,"next":${JSON.stringify(notKept(what, "envelope", to as string, baseUrl))}`;
}

/**
 * Every envelope gets an ack, so string concatenation builds it. The patterns of its parts allow no character that JSON
 * escapes.
 */
function ack({ id, type }: Envelope, outcome: "accepted" | "duplicate", rest: string): string {
  const repeat = outcome === "duplicate" ? ',"duplicate":true' : "";
  return `{"frame":"ack","envelope_id":"${id}","type":"${type}","accepted":true${repeat},${rest}}`;
}

/** Members of an error frame that its code does not imply. */
export interface ErrorDetails {
  readonly envelopeId?: string | undefined;
  readonly detail?: string | undefined;
  /** Replaces the hint of the code. */
  readonly hint?: string | undefined;
  readonly errors?: readonly FieldError[] | undefined;
  readonly retryAfterMs?: number;
  /** Unix ms, for clock errors. */
  readonly serverTime?: number;
  readonly canonicalSha256?: string | undefined;
}

export function errorFrame(code: ErrorCode, details: ErrorDetails): string {
  const { title, hint, retry } = ERRORS[code];
  return JSON.stringify({
    frame: "error",
    code,
    message: details.detail ?? title,
    hint: details.hint ?? hint,
    retry,
    ...(details.errors === undefined ? {} : { errors: [...details.errors] }),
    ...(details.envelopeId === undefined ? {} : { envelope_id: details.envelopeId }),
    ...(details.retryAfterMs === undefined ? {} : { retry_after_ms: details.retryAfterMs }),
    ...(details.serverTime === undefined ? {} : { server_time: details.serverTime }),
    ...(details.canonicalSha256 === undefined ? {} : { canonical_sha256: details.canonicalSha256 }),
  } satisfies Omit<ErrorFrame, "code"> & { code: ErrorCode });
}

/**
 * A delivery carries the accepted canonical text. The pod does not parse or serialise it again.
 * @param sessionId null if the envelope belongs to no session.
 */
export function deliverFrame(sessionId: string | null, envelopeText: string): string {
  if (sessionId === null) return `{"frame":"deliver","envelope":${envelopeText}}`;
  return `{"frame":"deliver","session_id":"${sessionId}","envelope":${envelopeText}}`;
}

export function pendingSessionsNotice(agent: string, pending: PresenceAcceptance["pending"]): string {
  const sessions = pending.map(
    ({ sessionId, requester, createdAt, expiresAt }): PendingSession => ({
      session_id: sessionId,
      requester,
      created_at_iso: new Date(createdAt).toISOString(),
      expires_at_iso: new Date(expiresAt).toISOString(),
    }),
  );
  return notice({ notice: "pending_sessions", agent_id: agent, total: sessions.length, sessions });
}

export function decidedSessionsNotice(agent: string, decided: PresenceAcceptance["decided"]): string {
  const sessions = decided.map(
    ({ sessionId, target, status, decidedAt }): DecidedSession => ({
      session_id: sessionId,
      target,
      status,
      decided_at_iso: new Date(decidedAt).toISOString(),
    }),
  );
  return notice({ notice: "decided_sessions", agent_id: agent, sessions });
}

export function supersededNotice(agent: string, epoch: number): string {
  return notice({ notice: "superseded", agent_id: agent, epoch });
}

export function releasedNotice(agent: string, reason: ReleaseReason): string {
  return notice({ notice: "released", agent_id: agent, reason });
}

export function drainingNotice(reconnectAfterMs: number): string {
  return notice({ notice: "draining", reconnect_after_ms: reconnectAfterMs });
}

/** The limits of one connection; 0 = no limit. */
export function slowDownNotice(envelopesPerSecond: number, bytesPerSecond: number): string {
  return notice({
    notice: "slow_down",
    envelopes_per_second: envelopesPerSecond,
    bytes_per_second: bytesPerSecond,
  });
}

type Notice = NoticeFrame extends infer N ? (N extends NoticeFrame ? Omit<N, "frame"> : never) : never;

function notice(members: Notice): string {
  return JSON.stringify({ frame: "notice", ...members });
}
