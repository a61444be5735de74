import { isErrorCode, knownRetry, RelayError } from "../../errors.ts";
import { membersOf, textOf } from "../../frames.ts";
import { type ReplySend, withReply } from "../../replies.ts";
import type {
  ConnectorState,
  DecidedSession,
  Delivery,
  Envelope,
  JsonObject,
  Notice,
  PendingSession,
} from "../../types.ts";
import { jsonLine } from "../output.ts";

/**
 * The lines in which one process tells another of the same user what comes over the agent's connection: JSON of its control
 * socket, after a line {"follow":true}. Both ends are of this package. Those of deliveries are written by `deliveryMembers`.
 */

/** What whoever follows later is told, too. */
export type SessionNotice = Extract<Notice, { kind: "pending_sessions" | "decided_sessions" }>;

/** The state of a connection that ended for good stays with its process: whoever follows then connects by itself. */
export function stateLine(state: ConnectorState): string {
  if (state.status === "closed") return jsonLine({ event: "state", state: { status: "connecting" } });
  if (state.status !== "reconnecting" || state.error === undefined) return jsonLine({ event: "state", state });
  const { code, message, hint, retry } = state.error;
  return jsonLine({ event: "state", state: { ...state, error: { code, message, hint, retry } } });
}

/** @param members those of stateLine. */
export function stateOf({ state }: JsonObject): ConnectorState {
  const { error, ...members } = membersOf(state);
  const { code, message, hint, retry } = membersOf(error);
  const why = isErrorCode(code) && {
    error: new RelayError(code, { message: textOf(message), hint: textOf(hint), retry: knownRetry(retry) }),
  };
  return { ...members, ...why } as ConnectorState;
}

export function isOfSessions(notice: Notice): notice is SessionNotice {
  return notice.kind === "pending_sessions" || notice.kind === "decided_sessions";
}

export function noticeLine({ kind, ...members }: SessionNotice): string {
  return jsonLine({ event: kind, ...members });
}

/** @param members those of noticeLine; undefined for another line. */
export function noticeOf({ event, total, sessions }: JsonObject): SessionNotice | undefined {
  const listed = Array.isArray(sessions) ? sessions : [];
  if (event === "pending_sessions") {
    return { kind: event, total: total as number, sessions: (listed as PendingSession[]).map(datedPending) };
  }
  if (event !== "decided_sessions") return undefined;
  return { kind: event, sessions: (listed as DecidedSession[]).map(datedDecided) };
}

function datedPending({ createdAt, expiresAt, ...session }: PendingSession): PendingSession {
  return { ...session, createdAt: new Date(createdAt), expiresAt: new Date(expiresAt) };
}

function datedDecided({ decidedAt, ...session }: DecidedSession): DecidedSession {
  return { ...session, decidedAt: new Date(decidedAt) };
}

/** @param members those of deliveryMembers. @param send what its reply goes out by. */
export function deliveryOf(members: JsonObject, send: ReplySend): Delivery {
  const envelope = membersOf(members.envelope) as unknown as Envelope;
  const { from, type, payload } = envelope;
  const [sessionId, issuer] = [textOf(members.session_id), textOf(members.issuer)];
  const received = {
    envelope,
    from,
    type,
    payload,
    verified: members.verified as Delivery["verified"],
    ...(sessionId !== undefined && { sessionId }),
    ...(issuer !== undefined && { issuer }),
    sealed: members.sealed === true,
    receivedAt: Date.parse(String(members.received_at_iso)),
  };
  return withReply(received, send);
}
