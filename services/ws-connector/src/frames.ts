import type { Envelope } from "@agent-relay/shared/contract/envelope.ts";
import { ERRORS, type ErrorCode } from "@agent-relay/shared/contract/errors.ts";
import {
  type AckFrame,
  ANNOUNCED_LIMITS,
  type ErrorFrame,
  type NoticeFrame,
} from "@agent-relay/shared/contract/frames.ts";
import type { PendingSession } from "@agent-relay/shared/contract/session.ts";
import type { DeliveryAcceptance, PresenceAcceptance, WaitingSession } from "@agent-relay/shared/window/acceptance.ts";

/** The frames that the relay sends, as texts; `frame` is always the first member. Source: protocol, section 6. */

export function helloFrame(connectionId: string, now: number): string {
  return JSON.stringify({
    frame: "hello",
    service: "agent-relay",
    connection_id: connectionId,
    server_time: now,
    limits: ANNOUNCED_LIMITS,
  });
}

export function presenceAck(envelope: Envelope, acceptance: PresenceAcceptance): string {
  const { outcome, status, lastSeen } = acceptance;
  const presence: AckFrame["presence"] = {
    agent_id: envelope.from,
    status,
    last_seen_iso: lastSeen === null ? null : new Date(lastSeen).toISOString(),
  };
  return ack(envelope, outcome, `"presence":${JSON.stringify(presence)}`);
}

export function deliveryAck(envelope: Envelope, acceptance: DeliveryAcceptance): string {
  const { outcome, delivery, sessionId, sessionStatus } = acceptance;
  const target = `"target_delivery":{"status":"${delivery}","can_deliver_realtime":${delivery === "online"}}`;
  if (sessionId === null) return ack(envelope, outcome, target);
  const status = sessionStatus ?? (envelope.type === "session.approve" ? "approved" : "rejected");
  return ack(envelope, outcome, `${target},"session_id":"${sessionId}","session_status":"${status}"`);
}

/** One for each envelope, so it is put together from texts that their patterns keep free of anything to escape. */
function ack({ id, type }: Envelope, outcome: "accepted" | "duplicate", rest: string): string {
  const repeat = outcome === "duplicate" ? ',"duplicate":true' : "";
  return `{"frame":"ack","envelope_id":"${id}","type":"${type}","accepted":true${repeat},${rest}}`;
}

/** What an error frame says beyond its code. */
export interface ErrorDetails {
  readonly envelopeId?: string | undefined;
  readonly detail?: string | undefined;
  readonly retryAfterMs?: number;
  /** Epoch ms, for clock errors. */
  readonly serverTime?: number;
}

export function errorFrame(code: ErrorCode, details: ErrorDetails): string {
  const { title, hint } = ERRORS[code];
  return JSON.stringify({
    frame: "error",
    code,
    message: details.detail ?? title,
    hint,
    ...(details.envelopeId === undefined ? {} : { envelope_id: details.envelopeId }),
    ...(details.retryAfterMs === undefined ? {} : { retry_after_ms: details.retryAfterMs }),
    ...(details.serverTime === undefined ? {} : { server_time: details.serverTime }),
  } satisfies Omit<ErrorFrame, "code"> & { code: ErrorCode });
}

/**
 * A delivery, put around the canonical text as it was accepted: nothing is parsed or serialised again.
 * @param sessionId `-` when the envelope is of no session.
 */
export function deliverFrame(sessionId: string, envelopeText: string): string {
  if (sessionId === "-") return `{"frame":"deliver","envelope":${envelopeText}}`;
  return `{"frame":"deliver","session_id":"${sessionId}","envelope":${envelopeText}}`;
}

export function pendingSessionsNotice(agent: string, waiting: readonly WaitingSession[]): string {
  const sessions = waiting.map(
    ({ sessionId, requester, createdAt, expiresAt }): PendingSession => ({
      session_id: sessionId,
      requester,
      created_at_iso: new Date(createdAt).toISOString(),
      expires_at_iso: new Date(expiresAt).toISOString(),
    }),
  );
  return notice({ notice: "pending_sessions", agent_id: agent, total: sessions.length, sessions });
}

export function supersededNotice(agent: string, epoch: number): string {
  return notice({ notice: "superseded", agent_id: agent, epoch });
}

export function drainingNotice(reconnectAfterMs: number): string {
  return notice({ notice: "draining", reconnect_after_ms: reconnectAfterMs });
}

type Notice = NoticeFrame extends infer N ? (N extends NoticeFrame ? Omit<N, "frame"> : never) : never;

function notice(said: Notice): string {
  return JSON.stringify({ frame: "notice", ...said });
}
