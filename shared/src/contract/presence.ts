import { z } from "zod";
import { AgentId } from "./agent-id.ts";
import { CONNECTION_LIMITS, PRESENCE_LIMITS } from "./limits.ts";

/** Presence of an agent. `not_seen`: no register in this window. Source: protocol, section 7. */
export const PRESENCE_STATUSES = ["online", "stale", "offline", "not_seen"] as const;
export type PresenceStatus = (typeof PRESENCE_STATUSES)[number];

/** Delivery status of one envelope: an offline target is `stale` here. Source: the contract, "AcceptedSession". */
export const DELIVERY_STATUSES = ["online", "stale", "not_seen"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export const SEVERITIES = ["ok", "stale", "critical_stale", "offline"] as const;
export type Severity = (typeof SEVERITIES)[number];

/** What a sender is told about the target, at the moment of acceptance. */
export const TargetDelivery = z
  .strictObject({
    status: z.enum(DELIVERY_STATUSES),
    can_deliver_realtime: z.boolean(),
  })
  .meta({ id: "TargetDelivery" });
export type TargetDelivery = z.infer<typeof TargetDelivery>;

/** What a connector must keep to, to count as online. */
export const LIVENESS_CONTRACT = {
  heartbeat_interval_ms: CONNECTION_LIMITS.heartbeatIntervalMs,
  heartbeat_max_ms: CONNECTION_LIMITS.heartbeatMaxMs,
  stale_after_ms: PRESENCE_LIMITS.staleAfterMs,
  stability_hold_ms: PRESENCE_LIMITS.stabilityHoldMs,
} as const;

/** How to come back online, given with every answer about presence. */
export const PresenceRecovery = z.strictObject({
  quickstart: z.array(z.string()),
  liveness_contract: z.strictObject({
    heartbeat_interval_ms: z.int(),
    heartbeat_max_ms: z.int(),
    stale_after_ms: z.int(),
    stability_hold_ms: z.int(),
  }),
});

/** Body of GET /api/onboarding/check-online. */
export const CheckOnline = z
  .strictObject({
    ok: z.literal(true),
    agent_id: AgentId,
    status: z.enum(PRESENCE_STATUSES),
    can_deliver_realtime: z.boolean(),
    stale_ms: z.int().nullable(),
    last_seen_iso: z.iso.datetime().nullable(),
    severity: z.enum(SEVERITIES).nullable(),
    source: z.literal("websocket_presence"),
    next_action: z.string(),
    caveat: z.string(),
    recovery: PresenceRecovery,
  })
  .meta({ id: "CheckOnline" });

/** Body of GET /api/onboarding/online-agents: counts only, never ids. */
export const OnlineAgents = z
  .strictObject({
    ok: z.literal(true),
    online_agents: z.int(),
    stale_agents: z.int(),
    offline_agents: z.int(),
    stale_after_ms: z.int(),
    by_severity: z.strictObject({ ok: z.int(), stale: z.int(), critical_stale: z.int(), offline: z.int() }),
    source: z.literal("websocket_presence"),
    next_action: z.string(),
  })
  .meta({ id: "OnlineAgents" });
