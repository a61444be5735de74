import { z } from "zod";
import { RelayError } from "../errors.ts";
import { sessionIdOf } from "../session-id.ts";
import { PENDING } from "../session-status.ts";
import type { SessionStatus } from "../types.ts";

/** Asks the relay for a session. Resolves with its answer; rejects as PresenceOf does. */
export type SessionOf = (sessionId: string, signal: AbortSignal) => Promise<unknown>;

/** A session as the relay has it: who, when and in which state, never its contents. */
export interface SessionState {
  readonly status: SessionStatus;
  readonly requester: string;
  readonly target: string;
  readonly createdAt: string;
  readonly expiresAt: string;
  /** Null while it is pending. */
  readonly decidedAt: string | null;
  /** Whether the target got the request. To approve one that it did not get counts for nothing. */
  readonly isReceived: boolean;
}

export const STATUSES = [PENDING, "approved", "rejected", "expired"] as const;

/** The part of the relay's answer that is used. Source: docs/protocol.md#sessions. */
const Answer = z.object({
  session_id: z.string().refine((id) => sessionIdOf(id) !== undefined),
  status: z.enum(STATUSES),
  requester: z.string(),
  target: z.string(),
  created_at_iso: z.string(),
  expires_at_iso: z.string(),
  decided_at_iso: z.string().nullable(),
  target_delivery: z.object({ can_deliver_realtime: z.boolean() }),
});

/** @throws as SessionOf rejects; `refused` for an answer that says something else. */
export async function sessionState(ask: SessionOf, sessionId: string, signal: AbortSignal): Promise<SessionState> {
  const answer = Answer.safeParse(await ask(sessionId, signal));
  if (!answer.success || answer.data.session_id !== sessionId) throw new RelayError("refused");
  const { status, requester, target, created_at_iso, expires_at_iso, decided_at_iso, target_delivery } = answer.data;
  return {
    ...{ status, requester, target },
    ...{ createdAt: created_at_iso, expiresAt: expires_at_iso, decidedAt: decided_at_iso },
    isReceived: target_delivery.can_deliver_realtime,
  };
}
