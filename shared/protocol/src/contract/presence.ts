import { z } from "zod";
import { CONNECTION_LIMITS, PRESENCE_LIMITS } from "../wire/limits.ts";
import { AgentId } from "./envelope.ts";

/** Presence of an agent. `not_seen`: no register in this window. Source: docs/protocol.md#presence. */
export const PRESENCE_STATUSES = ["online", "stale", "offline", "not_seen"] as const;
export type PresenceStatus = (typeof PRESENCE_STATUSES)[number];

/** Delivery status of one envelope. For an offline target it is `stale`. Source: docs/protocol.md#presence. */
export const DELIVERY_STATUSES = ["online", "stale", "not_seen"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

const SEVERITIES = ["ok", "stale", "critical_stale", "offline"] as const;
export type Severity = (typeof SEVERITIES)[number];

/** State of the target at the moment of acceptance. */
export const TargetDelivery = z
  .strictObject({
    status: z.enum(DELIVERY_STATUSES),
    can_deliver_realtime: z.boolean(),
  })
  .meta({ id: "TargetDelivery" });
export type TargetDelivery = z.infer<typeof TargetDelivery>;

export function targetDelivery(status: DeliveryStatus): TargetDelivery {
  return { status, can_deliver_realtime: status === "online" };
}

/** Times that a connector must keep to count as online. */
export const LIVENESS_CONTRACT = {
  heartbeat_interval_ms: CONNECTION_LIMITS.heartbeatIntervalMs,
  heartbeat_max_ms: CONNECTION_LIMITS.heartbeatMaxMs,
  stale_after_ms: PRESENCE_LIMITS.staleAfterMs,
  stability_hold_ms: PRESENCE_LIMITS.stabilityHoldMs,
} as const;

/** Facts about an accepted envelope whose target was not online. Source: docs/protocol.md#delivery. */
export const NotKept = z
  .strictObject({
    kept: z
      .literal(false)
      .meta({ description: "What was sent is not kept. Of a session request the ids and times stay pending." }),
    do: z.string(),
    check: z.string().meta({ description: "Says whether the target is online." }),
  })
  .meta({ id: "NotKept" });
export type NotKept = z.infer<typeof NotKept>;

/** Steps by which an agent's owner brings the agent online and keeps it online. */
export const PresenceRecovery = z.strictObject({
  quickstart: z.array(z.string()),
  liveness_contract: z.strictObject({
    heartbeat_interval_ms: z.int(),
    heartbeat_max_ms: z.int(),
    stale_after_ms: z.int(),
    stability_hold_ms: z.int(),
  }),
});

/** Why the relay delivers nothing to an online agent. Source: docs/protocol.md#slow-readers. */
export const UndeliverableReason = z.literal("congested").meta({
  description: "Only where an online agent cannot be delivered to: it reads too slowly, and too much waits for it.",
});

/** Body of GET /api/onboarding/check-online. */
export const CheckOnline = z
  .strictObject({
    ok: z.literal(true),
    agent_id: AgentId,
    status: z.enum(PRESENCE_STATUSES),
    can_deliver_realtime: z.boolean(),
    reason: UndeliverableReason.optional(),
    stale_ms: z.int().nullable(),
    last_seen_iso: z.iso.datetime().nullable(),
    online_since_iso: z.iso
      .datetime()
      .nullable()
      .meta({ description: "Since when one connection has held the agent without a gap. Null unless online." }),
    stable: z.boolean().meta({
      description:
        "Online, and held for stability_hold_ms: a sign that the connection lasts, before you spend a session request. The relay refuses nothing for want of it.",
    }),
    severity: z
      .enum(SEVERITIES)
      .nullable()
      .meta({
        description: `ok: online. stale: not online, for at most ${PRESENCE_LIMITS.criticalStaleAfterMs} ms; critical_stale: for longer. offline: last seen longer ago than offline_after_ms. Null: not seen.`,
      }),
    source: z.literal("websocket_presence"),
    next_action: z.string().meta({ description: "For who asks; what the agent's owner can do is in recovery." }),
    caveat: z.string(),
    recovery: PresenceRecovery.extend({ addressed_to: z.literal("the owner of this agent") }),
  })
  .meta({ id: "CheckOnline" });
export type CheckOnline = z.infer<typeof CheckOnline>;
