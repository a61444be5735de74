import { z } from "zod";
import { WINDOW_LIMITS } from "../limits.ts";
import { Dropoff, FunnelStage } from "./activation-funnel.ts";
import { Privacy, ProofBoundaries, SessionProofRecord } from "./common.ts";
import { JourneySummary } from "./session-journeys.ts";
import { RETENTION_STATUS } from "./session-proof-retention.ts";
import {
  Completeness,
  CurrentWindow,
  DurableWindow,
  OperatorQuickScan,
  ProofGate,
  PublishedByMinute,
} from "./window.ts";

/** `totals` of traffic-daily; process-window counts. Source: docs/protocol.md#counters. */
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

/** Summary of the journeys; `url` lists them. */
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

/** The window, with its published envelopes by minute. */
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
