import { z } from "zod";
import { SESSION_LIMITS, WINDOW_LIMITS } from "../../wire/limits.ts";
import {
  Bottleneck,
  Completeness,
  CurrentWindow,
  DurableWindow,
  EconomicOperability,
  OperatorQuickScan,
  Privacy,
  ProofBoundaries,
  ProofGate,
  PublishedByMinute,
  ScopeFlags,
  SessionCounts,
  SessionProofRecord,
} from "./common.ts";

/** GET /api/ops/activation-funnel. Source: docs/reports.md#reports. */

/** Stages in order. */
export const STAGES = [
  "discovery",
  "connector_onboarding",
  "message_delivery",
  "session_negotiation",
  "feedback",
] as const;
const Stage = z.enum(STAGES).meta({ id: "Stage" });
export type StageName = z.infer<typeof Stage>;

const Rate = z.number().min(0).max(1).nullable().meta({
  description:
    "This count divided by the one before, at most 1, since stages count different things. Null when that count is 0.",
});

export const FunnelStage = z.strictObject({
  stage: Stage,
  status: z.enum(["active", "online", "idle"]).meta({
    description: "idle: the count is 0. online: a connector is online now. active: the count is not 0.",
  }),
  count: z.int(),
  evidence: z.string().meta({ description: "What was counted." }),
  previous_stage: Stage.nullable(),
  dropoff_from_previous: z.int().min(0).nullable(),
  conversion_rate_from_previous: Rate,
});
export type FunnelStage = z.infer<typeof FunnelStage>;

export const Dropoff = z
  .strictObject({
    from: Stage,
    to: Stage,
    previous_count: z.int(),
    current_count: z.int(),
    dropoff_count: z.int().min(0),
    conversion_rate: Rate,
    status: z.enum(["no_traffic", "blocked", "dropoff", "no_dropoff"]).meta({
      description: "no_traffic: the previous count is 0. blocked: this count is 0. dropoff: this count is lower.",
    }),
  })
  .meta({ id: "Dropoff" });
export type Dropoff = z.infer<typeof Dropoff>;

export const ActivationFunnel = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  window_started_at: z.int(),
  ...Completeness.shape,
  purpose: z.string(),
  stages: z.array(FunnelStage).length(STAGES.length),
  dropoffs: z.array(Dropoff).length(STAGES.length - 1),
  largest_current_dropoff: Dropoff.nullable().meta({ description: "By dropoff_count; null when there is no dropoff." }),
  next_action: z.string().meta({ description: "The action of recommended_next_step." }),
  recommended_next_step: z.strictObject({
    bottleneck: Bottleneck,
    action: z.string(),
    method: z.literal("GET"),
    url: z.string(),
  }),
  operator_quick_scan: OperatorQuickScan,
  product_insight: z.strictObject({
    summary: z.string(),
    online_target_rate: Rate.meta({ description: "Share of session requests whose target was online." }),
    leading_feedback_category: z.string().nullable(),
  }),
  instrumentation_gaps: z.array(z.string()),
  economic_operability: EconomicOperability,
  proof_boundaries: ProofBoundaries,
  privacy: Privacy,
  note: z.string(),
});
export type ActivationFunnel = z.infer<typeof ActivationFunnel>;

/** GET /api/ops/session-journeys: ordered actions of anonymous visitors, and where they stopped. */

/** Stage of an action, by operation id. All other actions are reads and belong to discovery. */
export const STAGE_OF_ACTION: Readonly<Record<string, StageName>> = {
  checkOnline: "connector_onboarding",
  selfTest: "connector_onboarding",
  sendMessage: "message_delivery",
  requestSession: "session_negotiation",
  readSession: "session_negotiation",
  submitFeedback: "feedback",
};

/**
 * Resolution of all times of journeys: the start of the minute, or of the window in its first minute.
 * Source: docs/reports.md#journeys.
 */
export const JOURNEY_RESOLUTION_MS = 60_000;

/** The two stages between which a journey stopped. */
const Gap = { stage: Stage, next_stage: Stage };

export const JourneyDropOff = z.strictObject({ ...Gap, count: z.int() }).meta({ id: "JourneyDropOff" });
export type JourneyDropOff = z.infer<typeof JourneyDropOff>;

const JourneyTotals = z.strictObject({
  journeys: z.int(),
  events: z.int().meta({ description: "Actions of these journeys, including those that are no longer kept." }),
  retained_actions: z.int(),
  completed: z.int().meta({ description: "Journeys that gave feedback after a session request." }),
  unique_sessions: z
    .int()
    .meta({ description: "Visitors of the whole window; an estimate with an error of about 1 %." }),
});

export const JOURNEY_BOUNDS = {
  max_journeys: WINDOW_LIMITS.journeys,
  max_actions_per_journey: WINDOW_LIMITS.actionsPerJourney,
} as const;

/** Summary of the journeys. Also part of traffic-daily. */
export const JourneySummary = z.strictObject({
  totals: JourneyTotals,
  bounds: z.strictObject({
    max_journeys: z.literal(JOURNEY_BOUNDS.max_journeys),
    max_actions_per_journey: z.literal(JOURNEY_BOUNDS.max_actions_per_journey),
  }),
  drop_offs: z
    .array(JourneyDropOff)
    .length(STAGES.length - 1)
    .meta({ description: "In the order of the stages." }),
  largest_drop_off: JourneyDropOff.nullable().meta({ description: "The earliest of several; null without drop-offs." }),
});
export type JourneySummary = z.infer<typeof JourneySummary>;

export const SessionJourney = z.strictObject({
  journey: z
    .int()
    .min(1)
    .meta({ description: "Position in this list; it identifies nobody and changes between reads." }),
  first_seen: z.int(),
  first_seen_iso: z.iso.datetime(),
  last_seen: z.int(),
  last_seen_iso: z.iso.datetime(),
  idle_ms: z.int().min(0).meta({
    description:
      "generated_at - last_seen. last_seen is the beginning of a minute, so this is up to a minute too long.",
  }),
  event_count: z.int(),
  actions: z
    .array(z.strictObject({ action: z.string(), at: z.int() }))
    .max(WINDOW_LIMITS.actionsPerJourney)
    .meta({ description: "The latest actions, oldest first: operation id, and its minute in Unix ms." }),
  actions_truncated: z.boolean(),
  drop_off: z.strictObject(Gap).nullable().meta({ description: "Null: the journey reached the last stage." }),
  next_best_action: z.string(),
});
export type SessionJourney = z.infer<typeof SessionJourney>;

export const SessionJourneys = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  scope: z.literal("process_window"),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  path: z.array(Stage),
  stage_of_action: z
    .record(z.string(), Stage)
    .meta({ description: "By operation id; every other action belongs to discovery." }),
  ...JourneySummary.shape,
  next_action: z.string(),
  journeys: z.array(SessionJourney).max(WINDOW_LIMITS.journeys).meta({ description: "Latest seen first." }),
  caveat: z.string(),
  privacy: Privacy,
});
export type SessionJourneys = z.infer<typeof SessionJourneys>;

/** GET /api/ops/session-proof-retention. Source: docs/reports.md#reports. */

export const RETENTION_STATUS = "process_memory_only_not_durable";

export const ACTIVATION_STATUSES = [
  "waiting_for_connector",
  "waiting_for_session_request",
  "waiting_for_online_target",
  "proof_stale_refresh_due",
  "proof_fresh",
] as const;
export type ActivationStatus = (typeof ACTIVATION_STATUSES)[number];

const ACTIVATION_CHECKS = [
  "connector_online_now",
  "session_request_accepted",
  "online_target_proof_present",
  "online_target_proof_fresh",
  "durable_session_proof_store_configured",
] as const;

export const SessionProofRetention = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  generated_at: z.int(),
  ...Completeness.shape,
  status: z.literal(RETENTION_STATUS),
  activation_status: z.enum(ACTIVATION_STATUSES),
  current_bottleneck: Bottleneck,
  next_operator_action: z.string(),
  ...SessionCounts.shape,
  ...ScopeFlags.shape,
  ...ProofGate.shape,
  operator_quick_scan: OperatorQuickScan,
  activation_check: z.strictObject({
    process_window_passed: z.boolean().meta({ description: "Every check except that of the durable store." }),
    checks: z.array(z.strictObject({ check: z.enum(ACTIVATION_CHECKS), passed: z.boolean(), observed: z.string() })),
  }),
  durability: z.strictObject({
    status: z.literal(RETENTION_STATUS),
    survives_restart: z
      .strictObject({
        service_restart: z.literal(true),
        deploy_window_reset: z.literal(false),
        loss_of_redis: z.literal(false),
      })
      .meta({ description: "What ends the proofs (false) and what does not (true)." }),
    retention_limit: z.literal(SESSION_LIMITS.retainedProofs),
    note: z.string(),
  }),
  current_window: CurrentWindow,
  durable_window: DurableWindow,
  recent_session_proofs: z.array(SessionProofRecord).max(SESSION_LIMITS.retainedProofs),
  proof_boundaries: ProofBoundaries,
  monitors: z.record(z.string(), z.int()),
  privacy: Privacy,
});
export type SessionProofRetention = z.infer<typeof SessionProofRetention>;

/** `totals` of traffic-daily, counted in the process window. Source: docs/protocol.md#counters. */
export const TrafficTotals = z
  .strictObject({
    total_events: z.int(),
    unique_sessions: z.int(),
    surface_views: z.int(),
    onboarding_checks: z.int(),
    websocket_accepted: z.int(),
    published_envelopes: z.int(),
    simple_send_accepted: z.int(),
    simple_session_request_accepted: z.int(),
    simple_session_request_accepted_to_online_target: z.int(),
    simple_session_request_accepted_to_offline_target: z.int(),
    feedback_total: z.int(),
  })
  .meta({ id: "TrafficTotals" });

/** Summary of the journeys. `url` lists them. */
const JourneysSummary = z.strictObject({ ...JourneySummary.shape, url: z.string() });

const FunnelSummary = z.strictObject({
  stages: z.array(FunnelStage.pick({ stage: true, status: true, count: true })),
  largest_current_dropoff: Dropoff.nullable(),
  next_action: z.string(),
  url: z.string(),
});

const RetentionSummary = z.strictObject({
  status: z.literal(RETENTION_STATUS),
  retained_process_window_proofs: z.int(),
  retained_durable_proofs: z.literal(0),
  ...ProofGate.shape,
  url: z.string(),
});

/** The window with its published envelopes by minute. */
const WindowWithMinutes = z.strictObject({
  ...CurrentWindow.shape,
  published_envelopes_by_minute: PublishedByMinute,
  accepted_by_minute: z
    .array(z.strictObject({ minute_start: z.int(), count: z.int() }))
    .max(WINDOW_LIMITS.minutes)
    .meta({
      deprecated: true,
      description:
        "The former name of published_envelopes_by_minute, without empty minutes. The next version lacks it.",
    }),
});

/** GET /api/ops/traffic-daily. */
export const TrafficDaily = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  scope: z.literal("process_window"),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  caveat: z.string(),
  totals: TrafficTotals,
  top_surfaces: z.array(z.strictObject({ name: z.string(), count: z.int() })),
  funnel: FunnelSummary,
  session_journeys: JourneysSummary,
  session_proof_retention: RetentionSummary,
  current_window: WindowWithMinutes,
  durable_window: DurableWindow,
  recent_session_proofs: z.array(SessionProofRecord),
  proof_boundaries: ProofBoundaries,
  monitors: z.record(z.string(), z.int()).meta({ description: "Every counter by its full name." }),
  privacy: Privacy,
  operator_quick_scan: OperatorQuickScan,
});
export type TrafficDaily = z.infer<typeof TrafficDaily>;
