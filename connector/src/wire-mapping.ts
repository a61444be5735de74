import type { Draft } from "./canonical.ts";
import type { AckFrame } from "./frames.ts";
import type { Accepted, AcceptedSession, SessionProposal } from "./types.ts";

/**
 * Maps calls of the SDK to envelopes, and acks to their results. Source: docs/protocol.md#envelopes,
 * docs/protocol.md#frames.
 */

/** The part of an envelope that differs from call to call. Members that are undefined are left out. */
export interface EnvelopeContent {
  readonly type: string;
  readonly to?: string;
  readonly task_id?: string | undefined;
  readonly payload: object;
}

export function sessionRequest(to: string, proposal: SessionProposal): EnvelopeContent {
  const { purpose, ttlMinutes: ttl_minutes, intro, scope, expectedFrequency: expected_frequency } = proposal;
  return { type: "session.request", to, payload: { purpose, ttl_minutes, intro, scope, expected_frequency } };
}

export function draftOf(content: EnvelopeContent, id: string, from: string): Draft {
  return { id, from, ...content } as Draft;
}

export function accepted({ envelopeId, delivery, duplicate }: AckFrame): Accepted {
  return { envelopeId, delivery, duplicate };
}

export function acceptedSession(ack: AckFrame): AcceptedSession {
  return { ...accepted(ack), sessionId: ack.sessionId, status: ack.sessionStatus };
}
