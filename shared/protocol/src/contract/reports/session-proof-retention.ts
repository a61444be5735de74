import { z } from "zod";
import { SESSION_LIMITS } from "../limits.ts";
import { Privacy, ProofBoundaries, ScopeFlags, SessionProofRecord } from "./common.ts";
import {
  Bottleneck,
  Completeness,
  CurrentWindow,
  DurableWindow,
  OperatorQuickScan,
  ProofGate,
  SessionCounts,
} from "./window.ts";

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
