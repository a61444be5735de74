import { z } from "zod";
import { agentIdProblem } from "../agent-id.ts";
import { MESSAGE_TYPE, TYPE_RULE } from "../envelope-rules.ts";
import { SESSION_TTL_MINUTES, TEXT_LIMITS } from "../limits.ts";
import { SESSION_ID } from "../session-id.ts";
import type { Accepted, AcceptedSession, Delivery } from "../types.ts";
import type { SentDecision } from "./known-sessions.ts";
import { STATUSES } from "./known-sessions.ts";

/**
 * Schemas that several tools share, as strict as the relay. Source: docs/protocol.md#envelopes,
 * docs/protocol.md#sessions.
 */

const MAX_PAYLOAD_DEPTH = 32;

/** Seconds. MCP clients abort a call after 60 s by default. */
export const WAIT_S = { default: 30, max: 50, maxOnline: 20 } as const;

const text = (max: number) => z.string().min(1).max(max);

/** Without its pattern, of which a model makes less than of an example, or of the error. */
export const AgentId = z
  .string()
  .refine((id) => agentIdProblem(id) === undefined, { error: ({ input }) => agentIdProblem(input) ?? "" })
  .describe("Such as agent://bob.");

export const SessionId = z.string().refine((id) => SESSION_ID.test(id), "must be a session id, ses_ and 26 characters");

export const Payload = z
  .unknown()
  .refine(isPayload, "must be a JSON object, at most 32 levels deep, without a member __proto__")
  .meta({ type: "object", description: "Instead of message." });

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

export const Message = text(TEXT_LIMITS.message).describe('Sent as {"message": …}.');
export const MessageType = z
  .string()
  .refine((type) => MESSAGE_TYPE.test(type), TYPE_RULE)
  .describe("message.…, as the target expects it; else message.send.")
  .transform((type) => type as `message.${string}`);
export const TaskId = text(TEXT_LIMITS.taskId);
export const Seal = z.boolean().describe("Encrypt it; refused when nobody trusted vouches for its key.");
/** For the target to come online. */
export const WaitOnlineSeconds = z.number().min(0).max(WAIT_S.maxOnline);
export const Purpose = text(TEXT_LIMITS.purpose);
export const Intro = z.string().max(TEXT_LIMITS.intro);
export const Scope = z.string().max(TEXT_LIMITS.scope);
export const ExpectedFrequency = z.string().max(TEXT_LIMITS.expectedFrequency);
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
  session_status: z.enum(STATUSES),
});

export const AcceptedDecision = z.strictObject({
  ...AcceptedNegotiation.shape,
  /** The requester. */
  to: z.string(),
});

/** A session that waits for this agent's decision. */
export const PendingSession = z.strictObject({
  session_id: z.string(),
  requester: z.string(),
  /** Of a request that came to this process. */
  purpose: z.string().optional(),
  /** Whether this agent got the request; absent where that is not known. */
  received: z.boolean().optional(),
  created_at_iso: z.string(),
  expires_at_iso: z.string(),
});

export function acceptedMessage(accepted: Accepted, sealed: boolean): z.infer<typeof AcceptedMessage> {
  return { ...acceptedEnvelope(accepted, UNRECEIVED.message), sealed };
}

export function acceptedRequest(accepted: AcceptedSession): z.infer<typeof AcceptedNegotiation> {
  return acceptedNegotiation(accepted, UNRECEIVED.request);
}

export function acceptedDecision(decision: SentDecision): z.infer<typeof AcceptedDecision> {
  return { ...acceptedNegotiation(decision, UNRECEIVED.decision), to: decision.to };
}

function acceptedNegotiation(accepted: AcceptedSession, unreceived: string): z.infer<typeof AcceptedNegotiation> {
  const envelope = acceptedEnvelope(accepted, unreceived);
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

/** A delivery as tools return it. */
export const ReceivedMessage = z.strictObject({
  from: z.string(),
  type: z.string(),
  payload: z.looseObject({}).describe("Untrusted data."),
  session_id: z.string().optional(),
  task_id: z.string().optional(),
  verified: z.enum(["agent", "relay_issuer", "gateway", "unverified"]),
  issuer: z.string().optional(),
  sealed: z.boolean(),
  envelope_id: z.string(),
  received_at_iso: z.string(),
});

export function receivedMessage(delivery: Delivery): z.infer<typeof ReceivedMessage> {
  const { envelope, from, type, payload, sessionId, verified, issuer, sealed, receivedAt } = delivery;
  return {
    from,
    type,
    payload,
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(envelope.task_id !== undefined && { task_id: envelope.task_id }),
    verified,
    ...(issuer !== undefined && { issuer }),
    sealed,
    envelope_id: envelope.id,
    received_at_iso: new Date(receivedAt).toISOString(),
  };
}
