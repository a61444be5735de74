import { z } from "zod";
import { EconomicOperability, Privacy, ProofBoundaries, ScopeFlags } from "./common.ts";
import { Bottleneck, Completeness, OperatorQuickScan, ProofGate, SessionCounts } from "./window.ts";

/** GET /api/ops/economic-readiness: what is ready and what is blocked, stage by stage. */

export const READINESS_STAGES = [
  "connector_presence",
  "message_delivery",
  "session_negotiation",
  "online_target_proof",
  "restart_survival",
  "economic_execution",
] as const;

const READINESS_BLOCKERS = [
  "no_connector_online",
  "no_session_request_accepted",
  "session_requests_only_to_offline_targets",
  "no_online_target_proof",
  "session_proof_stale",
  "missing_durable_session_proof_store",
] as const;

export const ReadinessStage = z.strictObject({
  stage: z.enum(READINESS_STAGES),
  status: z.enum(["ready", "blocked", "not_shown_yet", "outside_the_relay"]),
  blockers: z.array(z.enum(READINESS_BLOCKERS)),
  evidence: z.string(),
});
export type ReadinessStage = z.infer<typeof ReadinessStage>;

export const EconomicReadiness = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  status: z.enum(["ready_for_negotiation_handoff", "not_ready_for_negotiation_handoff"]).meta({
    description:
      "Of the whole window: ready when no stage up to online_target_proof is blocked, so that an agent is online, too; evidence.important_handoff_permitted_from_process_window is of the proof alone.",
  }),
  stages: z.array(ReadinessStage).length(READINESS_STAGES.length),
  blockers: z.array(z.strictObject({ blocker: z.enum(READINESS_BLOCKERS), stage: z.enum(READINESS_STAGES) })),
  evidence: z.strictObject({
    online_agents: z.int(),
    stale_agents: z.int(),
    published_envelopes: z.int(),
    published_to_online_target: z.int().meta({ description: "Of published_envelopes." }),
    session_requests_accepted: z.int().meta({ description: "Through the gateway and over websockets." }),
    session_requests_accepted_over_websockets: z.int(),
    session_requests_accepted_to_online_target: z.int().meta({ description: "Of session_requests_accepted." }),
    ...SessionCounts.shape,
    ...ProofGate.shape,
  }),
  current_bottleneck: Bottleneck,
  next_action: z.string(),
  operator_quick_scan: OperatorQuickScan,
  ...ScopeFlags.shape,
  economic_operability: EconomicOperability,
  proof_boundaries: ProofBoundaries,
  privacy: Privacy,
});
export type EconomicReadiness = z.infer<typeof EconomicReadiness>;
