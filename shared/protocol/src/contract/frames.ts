import { z } from "zod";
import { RELEASE_REASONS } from "../wire/credential.ts";
import { MESSAGE_TYPE_PATTERN } from "../wire/envelope.ts";
import { ERRORS, type ErrorCode, RETRIES } from "../wire/errors.ts";
import { CONNECTION_LIMITS, ENVELOPE_LIMITS, PRESENCE_LIMITS } from "../wire/limits.ts";
import { AgentId, SessionId, SignedEnvelope } from "./envelope.ts";

import { NotKept, PRESENCE_STATUSES, TargetDelivery } from "./presence.ts";
import { DecidedSession, PendingSession, SESSION_STATUSES } from "./session.ts";

/** Frames that the relay sends. `frame` is always the first member. Source: docs/protocol.md#frames. */

const SECOND_MS = 1000;

/** Settings that the relay tells clients as limits of a websocket. 0 = no limit. */
interface ConnectionRates {
  readonly envelopesPerSecond: number;
  readonly bytesPerSecond: number;
}

/** The limits in `hello` and in the manifests. */
export function announcedLimits(rates: ConnectionRates): AnnouncedLimits {
  const { envelopesPerSecond, bytesPerSecond } = rates;
  return {
    heartbeat_interval_ms: CONNECTION_LIMITS.heartbeatIntervalMs,
    heartbeat_max_ms: CONNECTION_LIMITS.heartbeatMaxMs,
    stale_after_ms: PRESENCE_LIMITS.staleAfterMs,
    max_clock_skew_ms: ENVELOPE_LIMITS.maxClockSkewMs,
    max_frame_bytes: ENVELOPE_LIMITS.maxFrameBytes,
    register_within_ms: CONNECTION_LIMITS.registerWithinMs,
    max_agents_per_connection: CONNECTION_LIMITS.maxAgentsPerConnection,
    envelopes_per_second: envelopesPerSecond,
    envelopes_burst: envelopesPerSecond * CONNECTION_LIMITS.envelopeBurstSeconds,
    bytes_per_second: bytesPerSecond,
    bytes_burst: bytesPerSecond * CONNECTION_LIMITS.byteBurstSeconds,
    max_unacknowledged: maxUnacknowledged(rates),
  };
}

/**
 * Number of the longest envelopes that the rates pass in the time that a heartbeat may wait behind them.
 * @returns 0 without a limit.
 */
function maxUnacknowledged({ envelopesPerSecond, bytesPerSecond }: ConnectionRates): number {
  const perSecond = [envelopesPerSecond, bytesPerSecond / ENVELOPE_LIMITS.maxFrameBytes].filter((rate) => rate > 0);
  if (perSecond.length === 0) return 0;
  return Math.max(1, Math.floor((Math.min(...perSecond) * CONNECTION_LIMITS.maxBacklogMs) / SECOND_MS));
}

export type AnnouncedLimits = z.infer<typeof AnnouncedLimits>;
export const AnnouncedLimits = z
  .strictObject({
    heartbeat_interval_ms: z.int(),
    heartbeat_max_ms: z.int(),
    stale_after_ms: z.int(),
    max_clock_skew_ms: z.int(),
    max_frame_bytes: z.int(),
    register_within_ms: z.int(),
    max_agents_per_connection: z.int(),
    envelopes_per_second: z.int().meta({ description: "Of one connection, and as many pings; 0 = no limit." }),
    envelopes_burst: z.int(),
    bytes_per_second: z.int().meta({ description: "Of one connection; 0 = no limit." }),
    bytes_burst: z.int(),
    max_unacknowledged: z.int().meta({
      description:
        "Keep at most so many envelopes without an answer: a heartbeat comes in time behind no more. 0 = no limit.",
    }),
  })
  .meta({ id: "AnnouncedLimits" });

const WEBSOCKET_ERROR_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].websocket);

export const HelloFrame = z
  .strictObject({
    frame: z.literal("hello"),
    service: z.literal("agent-relay"),
    connection_id: z.string(),
    server_time: z.int(),
    limits: AnnouncedLimits,
    connector_version: z.string().optional().meta({
      description: "Of the connector that this relay hands out at /connectors; absent when it hands out none.",
    }),
  })
  .meta({ description: "The first frame of a connection: server time and limits." });

const ack = {
  frame: z.literal("ack"),
  envelope_id: z.string(),
  accepted: z.literal(true),
  duplicate: z.literal(true).optional().meta({
    description:
      "A repeat: it was neither delivered nor counted again. target_delivery is the target's status now, and says nothing of the first delivery.",
  }),
};
const next = NotKept.optional().meta({
  description: "Only of a new message or session request whose target was not online.",
});
const sessionAck = {
  ...ack,
  target_delivery: TargetDelivery,
  session_id: SessionId,
  session_status: z.enum(SESSION_STATUSES),
};

/** Acks by the kind of envelope that they answer. */
export const ACK_FRAMES = {
  presence: z
    .strictObject({
      ...ack,
      type: z.enum(["agent.register", "agent.heartbeat"]),
      presence: z.strictObject({
        agent_id: AgentId,
        status: z.enum(PRESENCE_STATUSES),
        last_seen_iso: z.iso.datetime().nullable(),
      }),
      credential_expires_at_iso: z.iso.datetime().optional().meta({
        description:
          "When the last credential ends under which this connection may sign for the agent: register anew before.",
      }),
    })
    .meta({ description: "An agent.register or agent.heartbeat was accepted." }),
  message: z
    .strictObject({ ...ack, type: z.string().regex(MESSAGE_TYPE_PATTERN), target_delivery: TargetDelivery, next })
    .meta({ description: "A message was accepted; target_delivery says whether the target was online." }),
  session_request: z
    .strictObject({ ...sessionAck, type: z.literal("session.request"), next })
    .meta({ description: "A session request was accepted." }),
  session_decision: z
    .strictObject({ ...sessionAck, type: z.enum(["session.approve", "session.reject"]) })
    .meta({ description: "A decision was accepted; target_delivery is that of the requester." }),
} as const;

export const AckFrame = z.union([
  ACK_FRAMES.presence,
  ACK_FRAMES.message,
  ACK_FRAMES.session_request,
  ACK_FRAMES.session_decision,
]);

/** Digest of the text that a signature was checked against, so that the signer can compare. */
export const CanonicalSha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({ description: "With bad_signature: hex SHA-256 of the canonical text that the relay checked." });

/** Each wrong field with its fault. */
export const FieldErrors = z.array(z.strictObject({ field: z.string(), message: z.string() }));

export const ErrorFrame = z
  .strictObject({
    frame: z.literal("error"),
    code: z.enum(WEBSOCKET_ERROR_CODES),
    message: z.string(),
    hint: z.string(),
    retry: z.enum(RETRIES),
    errors: FieldErrors.optional(),
    envelope_id: z.string().optional(),
    retry_after_ms: z.int().optional(),
    server_time: z.int().optional(),
    canonical_sha256: CanonicalSha256.optional(),
  })
  .meta({
    description: "An envelope was not accepted, or none came in time; envelope_id names it where it could be read.",
  });

export const DeliverFrame = z
  .strictObject({ frame: z.literal("deliver"), session_id: SessionId.optional(), envelope: SignedEnvelope })
  .meta({
    description:
      "An envelope for an agent of this connection, as its sender signed it; session_id with session.* only.",
  });

/** The notices. `/asyncapi.json` has a message for each. */
export const NoticeFrame = z.discriminatedUnion("notice", [
  z
    .strictObject({
      frame: z.literal("notice"),
      notice: z.literal("pending_sessions"),
      agent_id: AgentId,
      total: z.int(),
      sessions: z.array(PendingSession),
    })
    .meta({
      description:
        "When the agent comes online: the sessions that it has yet to decide. To approve one whose request it did not receive counts for nothing: ask its requester to request again.",
    }),
  z
    .strictObject({
      frame: z.literal("notice"),
      notice: z.literal("decided_sessions"),
      agent_id: AgentId,
      sessions: z.array(DecidedSession),
    })
    .meta({
      description:
        "When the agent comes online: what was decided of its requests in the last hour while it was not. Nobody confirms a notice, so the same ones come again each time within the hour.",
    }),
  z
    .strictObject({
      frame: z.literal("notice"),
      notice: z.literal("superseded"),
      agent_id: AgentId,
      epoch: z.int(),
    })
    .meta({ description: "Another connection has taken this agent over." }),
  z
    .strictObject({
      frame: z.literal("notice"),
      notice: z.literal("released"),
      agent_id: AgentId,
      reason: z.enum(RELEASE_REASONS),
    })
    .meta({
      description:
        "The keys or credentials of this agent no longer hold: it is not online on this connection any more.",
    }),
  z
    .strictObject({ frame: z.literal("notice"), notice: z.literal("draining"), reconnect_after_ms: z.int() })
    .meta({ description: "The relay closes this connection soon, with 1001: connect again after this time." }),
  z
    .strictObject({
      frame: z.literal("notice"),
      notice: z.literal("slow_down"),
      envelopes_per_second: z.int(),
      bytes_per_second: z.int(),
    })
    .meta({
      description:
        "This connection was not read for more than half of the last 10 s, because it sends more than its limits allow: nothing is lost, answers come late, and heartbeats wait too. Who keeps to max_unacknowledged need do nothing. 0 = no limit.",
    }),
]);

export type PresenceAck = z.infer<typeof ACK_FRAMES.presence>;
export type ErrorFrame = z.infer<typeof ErrorFrame>;
export type NoticeFrame = z.infer<typeof NoticeFrame>;
