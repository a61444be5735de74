import type { Draft } from "./canonical.ts";
import type { AckFrame } from "./frames.ts";
import type { Accepted, AcceptedSession, SessionProposal } from "./types.ts";

/** What each call says on the wire, and what its ack means. Source: docs/protocol.md, "Envelopes" and "Frames". */

/** An envelope but for what is the same for all of an agent's. Members that are undefined are left out. */
export interface Message {
  readonly type: string;
  readonly to?: string;
  readonly task_id?: string | undefined;
  readonly payload: object;
}

export function sessionRequest(to: string, proposal: SessionProposal): Message {
  const { purpose, ttlMinutes: ttl_minutes, intro, scope, expectedFrequency: expected_frequency } = proposal;
  return { type: "session.request", to, payload: { purpose, ttl_minutes, intro, scope, expected_frequency } };
}

export function sessionDecision(type: "approve" | "reject", sessionId: string, to: string, reason?: string): Message {
  return { type: `session.${type}`, to, payload: { session_id: sessionId, reason } };
}

export function draftOf(message: Message, id: string, from: string): Draft {
  return { id, from, ...message } as Draft;
}

export function accepted({ envelopeId, delivery, duplicate }: AckFrame): Accepted {
  return { envelopeId, delivery, duplicate };
}

export function acceptedSession(ack: AckFrame): AcceptedSession {
  return { ...accepted(ack), sessionId: ack.sessionId, status: ack.sessionStatus };
}
