import { z } from "zod";
import type { Accepted, AcceptedSession } from "../types.ts";

/** Shapes that several tools share, as strict as the relay is. Source: docs/protocol.md, "Envelopes" and "Sessions". */

/** Lengths are UTF-16 characters. */
const TEXT_LIMITS = { message: 16_000, purpose: 500, intro: 1000, scope: 1000, reason: 500, taskId: 128 } as const;
const TTL_MINUTES = { min: 5, max: 1440, default: 60 } as const;
const MAX_PAYLOAD_DEPTH = 32;

const text = (max: number) => z.string().min(1).max(max);

export const AgentId = z
  .string()
  .regex(/^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/, "must be agent://<name>, lower case")
  .describe("An agent id: agent:// and a name of a-z, 0-9, '.', '_', '-', such as agent://alice.");

export const SessionId = z
  .string()
  .regex(/^ses_[0-9a-hjkmnp-tv-z]{26}$/, "must be a session id, ses_ and 26 characters")
  .describe("A session id as the relay gave it: ses_ and 26 characters.");

export const Payload = z
  .unknown()
  .refine(isPayload, "must be a JSON object, at most 32 levels deep, without a member __proto__")
  .meta({ type: "object", description: "A JSON object of your own making, at most 32 levels deep." });

export const Message = text(TEXT_LIMITS.message).describe('A plain text; it is sent as the payload {"message": …}.');
export const TaskId = text(TEXT_LIMITS.taskId).describe("Your own name for the task that this belongs to.");
export const Purpose = text(TEXT_LIMITS.purpose).describe("What the session is for, in a sentence or two.");
export const Intro = z.string().max(TEXT_LIMITS.intro).describe("Who you are.");
export const Scope = z.string().max(TEXT_LIMITS.scope).describe("What the session covers, and what it does not.");
export const Reason = z.string().max(TEXT_LIMITS.reason).describe("Why, for the requester to read.");
export const TtlMinutes = z
  .int()
  .min(TTL_MINUTES.min)
  .max(TTL_MINUTES.max)
  .describe(`Minutes in which the target can decide; ${TTL_MINUTES.default} when left out.`);

export const AcceptedMessage = z.strictObject({
  envelope_id: z.string(),
  target_status: z.enum(["online", "stale", "not_seen"]).describe("The target's presence when the relay accepted it."),
  can_deliver_realtime: z
    .boolean()
    .describe("True: handed to the target's connection. False: nobody got it, and the relay does not keep it."),
  duplicate: z.boolean().describe("True: the relay had it already, from a first attempt whose answer was lost."),
});

export const AcceptedNegotiation = z.strictObject({
  ...AcceptedMessage.shape,
  session_id: z.string(),
  session_status: z.enum(["pending_until_session.approve_or_session.reject", "approved", "rejected", "expired"]),
});

/** Ids and times of a session that waits for this agent's decision; its contents came with the request, if at all. */
export const PendingSession = z.strictObject({
  session_id: z.string(),
  requester: z.string(),
  created_at_iso: z.string(),
  expires_at_iso: z.string(),
});

export function acceptedMessage({ envelopeId, delivery, duplicate }: Accepted): z.infer<typeof AcceptedMessage> {
  return {
    envelope_id: envelopeId,
    target_status: delivery.status,
    can_deliver_realtime: delivery.canDeliverRealtime,
    duplicate,
  };
}

export function acceptedNegotiation(accepted: AcceptedSession): z.infer<typeof AcceptedNegotiation> {
  return { ...acceptedMessage(accepted), session_id: accepted.sessionId, session_status: accepted.status };
}

function isPayload(value: unknown): value is object {
  return typeof value === "object" && !Array.isArray(value) && value !== null && isSendable(value, MAX_PAYLOAD_DEPTH);
}

/** Deep nesting must not get as far as a recursion without bound. */
function isSendable(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0 || Object.hasOwn(value, "__proto__")) return false;
  return Object.values(value).every((member) => isSendable(member, levels - 1));
}
