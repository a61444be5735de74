import { z } from "zod";
import { AgentId } from "./agent-id.ts";
import { SessionId, SignedEnvelope } from "./envelope.ts";
import { ERRORS, type ErrorCode, RETRIES } from "./errors.ts";
import { CONNECTION_LIMITS, ENVELOPE_LIMITS, PRESENCE_LIMITS } from "./limits.ts";
import { NotKept, PRESENCE_STATUSES, TargetDelivery } from "./presence.ts";
import { PendingSession, SESSION_STATUSES } from "./session.ts";

/** The frames that the relay sends; `frame` is always the first member. Source: docs/protocol.md#frames. */

/** The limits in `hello` and in the signing manifest. */
export const ANNOUNCED_LIMITS = {
  heartbeat_interval_ms: CONNECTION_LIMITS.heartbeatIntervalMs,
  heartbeat_max_ms: CONNECTION_LIMITS.heartbeatMaxMs,
  stale_after_ms: PRESENCE_LIMITS.staleAfterMs,
  max_clock_skew_ms: ENVELOPE_LIMITS.maxClockSkewMs,
  max_frame_bytes: ENVELOPE_LIMITS.maxFrameBytes,
  register_within_ms: CONNECTION_LIMITS.registerWithinMs,
  max_agents_per_connection: CONNECTION_LIMITS.maxAgentsPerConnection,
} as const;

export const AnnouncedLimits = z.strictObject({
  heartbeat_interval_ms: z.int(),
  heartbeat_max_ms: z.int(),
  stale_after_ms: z.int(),
  max_clock_skew_ms: z.int(),
  max_frame_bytes: z.int(),
  register_within_ms: z.int(),
  max_agents_per_connection: z.int(),
});

const WEBSOCKET_ERROR_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].websocket);

export const HelloFrame = z.strictObject({
  frame: z.literal("hello"),
  service: z.literal("agent-relay"),
  connection_id: z.string(),
  server_time: z.int(),
  limits: AnnouncedLimits,
  connector_version: z
    .string()
    .optional()
    .meta({ description: "Of the connector that this relay hands out at /connectors; absent when it hands out none." }),
});

export const AckFrame = z.strictObject({
  frame: z.literal("ack"),
  envelope_id: z.string(),
  type: z.string(),
  accepted: z.literal(true),
  duplicate: z.literal(true).optional(),
  presence: z
    .strictObject({ agent_id: AgentId, status: z.enum(PRESENCE_STATUSES), last_seen_iso: z.iso.datetime().nullable() })
    .optional(),
  target_delivery: TargetDelivery.optional(),
  session_id: SessionId.optional(),
  session_status: z.enum(SESSION_STATUSES).optional(),
  next: NotKept.optional().meta({
    description: "Only of a new message or session request whose target was not online.",
  }),
});

/** Of a text that a signature was checked over, so that its signer can compare. */
export const CanonicalSha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({ description: "With bad_signature: hex SHA-256 of the canonical text that the relay checked." });

export const ErrorFrame = z.strictObject({
  frame: z.literal("error"),
  code: z.enum(WEBSOCKET_ERROR_CODES),
  message: z.string(),
  hint: z.string(),
  retry: z.enum(RETRIES),
  envelope_id: z.string().optional(),
  retry_after_ms: z.int().optional(),
  server_time: z.int().optional(),
  canonical_sha256: CanonicalSha256.optional(),
});

export const DeliverFrame = z.strictObject({
  frame: z.literal("deliver"),
  session_id: SessionId.optional(),
  envelope: SignedEnvelope,
});

export const NoticeFrame = z.discriminatedUnion("notice", [
  z.strictObject({
    frame: z.literal("notice"),
    notice: z.literal("pending_sessions"),
    agent_id: AgentId,
    total: z.int(),
    sessions: z.array(PendingSession),
  }),
  z.strictObject({
    frame: z.literal("notice"),
    notice: z.literal("superseded"),
    agent_id: AgentId,
    epoch: z.int(),
  }),
  z.strictObject({ frame: z.literal("notice"), notice: z.literal("draining"), reconnect_after_ms: z.int() }),
]);

export type AckFrame = z.infer<typeof AckFrame>;
export type ErrorFrame = z.infer<typeof ErrorFrame>;
export type NoticeFrame = z.infer<typeof NoticeFrame>;
