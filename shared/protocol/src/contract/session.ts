import { z } from "zod";
import { AgentId, SessionId } from "./envelope.ts";

import { TargetDelivery } from "./presence.ts";

/** Status of a session until its target decides or the session expires. Source: docs/protocol.md#sessions. */
export const PENDING = "pending_until_session.approve_or_session.reject";

export const SESSION_STATUSES = [PENDING, "approved", "rejected", "expired"] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];

/** The status in one word. */
export const TARGET_DECISIONS = ["pending", "approved", "rejected", "expired"] as const;
export type TargetDecision = (typeof TARGET_DECISIONS)[number];

/** Next step after an expired session, in its look-up and in guides. */
export const SESSION_OVER =
  "The session is over, undecided: its requester asks another target, or this one again once it has time to answer.";

/** Body of GET /sessions/{session_id}. Source: docs/protocol.md#sessions. */
export const SessionRecord = z
  .strictObject({
    ok: z.literal(true),
    session_id: SessionId,
    status: z
      .enum(SESSION_STATUSES)
      .meta({ description: "expired: its time ran out, or newer sessions took its place." }),
    requester: AgentId,
    target: AgentId,
    created_at_iso: z.iso.datetime(),
    expires_at_iso: z.iso.datetime(),
    decided_at_iso: z.iso.datetime().nullable(),
    target_delivery: TargetDelivery,
    next_action: z.string().meta({
      description: "Who does what next. A request that its target did not receive leads nowhere, even approved.",
    }),
    proof_boundary: z.string(),
  })
  .meta({ id: "SessionRecord" });
export type SessionRecord = z.infer<typeof SessionRecord>;

/** One session in the notice `pending_sessions`: ids and times, never contents. */
export const PendingSession = z.strictObject({
  session_id: SessionId,
  requester: AgentId,
  created_at_iso: z.iso.datetime(),
  expires_at_iso: z.iso.datetime(),
});
export type PendingSession = z.infer<typeof PendingSession>;

/** One session in the notice `decided_sessions`. */
export const DecidedSession = z.strictObject({
  session_id: SessionId,
  target: AgentId,
  status: z.enum(["approved", "rejected"]),
  decided_at_iso: z.iso.datetime(),
});
export type DecidedSession = z.infer<typeof DecidedSession>;

/** The interface that accepted a session request. */
export const PROOF_SOURCES = ["simple_session_api", "websocket_envelope"] as const;
export type ProofSource = (typeof PROOF_SOURCES)[number];

/** What a session, a counter or a proof shows, and what it does not show. */
export const PROOF_BOUNDARY =
  "Relay records show negotiation intent and delivery status only; they are no evidence of payment, GMV, earnings, completion, payout or reputation.";
