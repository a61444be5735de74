import { z } from "zod";
import { AGENT_ID } from "../agent-id.ts";
import { SESSION_TTL_MINUTES } from "../limits.ts";
import { SESSION_ID } from "../session-id.ts";
import type { Accepted, AcceptedSession } from "../types.ts";

/**
 * Schemas that several tools share, as strict as the relay. Source: docs/protocol.md#envelopes,
 * docs/protocol.md#sessions.
 */

/** Lengths are UTF-16 characters. */
const TEXT_LIMITS = { message: 16_000, purpose: 500, intro: 1000, scope: 1000, reason: 500, taskId: 128 } as const;
const MAX_PAYLOAD_DEPTH = 32;

/** Seconds. MCP clients abort a call after 60 s by default. */
export const WAIT_S = { default: 30, max: 50, maxOnline: 20 } as const;

const text = (max: number) => z.string().min(1).max(max);

export const AgentId = z.string().regex(AGENT_ID, "must be agent://<name>, lower case");

export const SessionId = z.string().regex(SESSION_ID, "must be a session id, ses_ and 26 characters");

export const Payload = z
  .unknown()
  .refine(isPayload, "must be a JSON object, at most 32 levels deep, without a member __proto__")
  .meta({ type: "object" });

/** What a tool sends: one of the two. */
interface Content {
  readonly message?: string | undefined;
  readonly payload?: unknown;
}

export const CONTENT_RULE = { path: ["payload"], error: "give either message or payload" };

export function hasOneContent({ message, payload }: Content): boolean {
  return (message === undefined) !== (payload === undefined);
}

export function contentOf({ message, payload }: Content): object {
  return payload === undefined ? { message } : (payload as object);
}

export const Message = text(TEXT_LIMITS.message).describe('Sent as payload {"message": …}.');
export const TaskId = text(TEXT_LIMITS.taskId);
export const Seal = z.boolean().describe("Encrypt it; refused when nobody trusted vouches for the target's key.");
/** For the target to come online. */
export const WaitOnlineSeconds = z.number().min(0).max(WAIT_S.maxOnline);
export const Purpose = text(TEXT_LIMITS.purpose);
export const Intro = z.string().max(TEXT_LIMITS.intro);
export const Scope = z.string().max(TEXT_LIMITS.scope);
export const Reason = z.string().max(TEXT_LIMITS.reason);
/** In which the target can decide. */
export const TtlMinutes = z.int().min(SESSION_TTL_MINUTES.min).max(SESSION_TTL_MINUTES.max);

const AcceptedEnvelope = z.strictObject({
  envelope_id: z.string(),
  target_status: z.enum(["online", "stale", "not_seen"]),
  can_deliver_realtime: z.boolean(),
  duplicate: z.boolean(),
  next_action: z.string().optional(),
});

export const AcceptedMessage = z.strictObject({ ...AcceptedEnvelope.shape, sealed: z.boolean() });

export const AcceptedNegotiation = z.strictObject({
  ...AcceptedEnvelope.shape,
  session_id: z.string(),
  session_status: z.enum(["pending_until_session.approve_or_session.reject", "approved", "rejected", "expired"]),
});

/**
 * A session that waits for this agent's decision: ids and times. Its contents came with the request, if it was
 * delivered.
 */
export const PendingSession = z.strictObject({
  session_id: z.string(),
  requester: z.string(),
  created_at_iso: z.string(),
  expires_at_iso: z.string(),
});

export function acceptedMessage(accepted: Accepted, sealed: boolean): z.infer<typeof AcceptedMessage> {
  return { ...acceptedEnvelope(accepted, UNRECEIVED.message), sealed };
}

/** @param step what it is, which decides what is left to do where nobody received it. */
export function acceptedNegotiation(
  accepted: AcceptedSession,
  step: "request" | "decision",
): z.infer<typeof AcceptedNegotiation> {
  const envelope = acceptedEnvelope(accepted, UNRECEIVED[step]);
  return { ...envelope, session_id: accepted.sessionId, session_status: accepted.status };
}

/** An acceptance reads like a success, and is none for what it was to reach. */
const UNRECEIVED = {
  message:
    "Nobody received it, and it is not stored: send it again with wait_online_seconds, or later, or tell your user.",
  request: "The target learns the session's id only: request again once it is online (check_presence).",
  decision: "The decision counts; the requester, who is not online, learns of it when it comes back.",
} as const;

function acceptedEnvelope({ envelopeId, delivery, duplicate }: Accepted, unreceived: string) {
  const { status, canDeliverRealtime } = delivery;
  return {
    envelope_id: envelopeId,
    target_status: status,
    can_deliver_realtime: canDeliverRealtime,
    duplicate,
    ...(!canDeliverRealtime && { next_action: unreceived }),
  };
}

function isPayload(value: unknown): value is object {
  return typeof value === "object" && !Array.isArray(value) && value !== null && isSendable(value, MAX_PAYLOAD_DEPTH);
}

/** Bounded recursion: a deeply nested payload must not overflow the stack. */
function isSendable(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0 || Object.hasOwn(value, "__proto__")) return false;
  return Object.values(value).every((member) => isSendable(member, levels - 1));
}
