import { targetDelivery } from "protocol/contract/presence.ts";
import { PROOF_BOUNDARY, type SessionRecord } from "protocol/contract/session.ts";
import type { Session } from "window/sessions.ts";

/** The 200 body of a session lookup: ids, times and status, never contents. Source: docs/protocol.md#sessions. */
export function sessionRecord(session: Session): SessionRecord {
  return {
    ok: true,
    session_id: session.sessionId,
    status: session.status,
    requester: session.requester,
    target: session.target,
    created_at_iso: new Date(session.createdAt).toISOString(),
    expires_at_iso: new Date(session.expiresAt).toISOString(),
    decided_at_iso: session.decidedAt === null ? null : new Date(session.decidedAt).toISOString(),
    target_delivery: targetDelivery(session.delivery),
    proof_boundary: PROOF_BOUNDARY,
  };
}
