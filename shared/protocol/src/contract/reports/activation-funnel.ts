import { z } from "zod";
import { EconomicOperability, Privacy, ProofBoundaries } from "./common.ts";
import { Bottleneck, Completeness, OperatorQuickScan } from "./window.ts";

/** GET /api/ops/activation-funnel. Source: docs/reports.md#reports. */

/** In order. */
export const STAGES = [
  "discovery",
  "connector_onboarding",
  "message_delivery",
  "session_negotiation",
  "feedback",
] as const;
export const Stage = z.enum(STAGES).meta({ id: "Stage" });
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
