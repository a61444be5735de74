import { z } from "zod";
import { PostLink, Privacy, ProofBoundaries, ScopeFlags } from "./common.ts";
import { Completeness, CurrentWindow, GateReason, ProofGate } from "./window.ts";

/** GET /api/public/restart-survival-check: what ends session proofs, and which of them would be gone. */

const MISSING_STORE = "missing_durable_session_proof_store";

const RUNBOOK_STATUSES = [
  "passed_fresh_online_target_proof",
  "blocked_no_online_target_proof",
  "blocked_stale_online_target_proof",
  `blocked_${MISSING_STORE}`,
  "due_before_every_handoff",
  "due_in_every_new_window",
] as const;

export const RestartSurvivalCheck = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  generated_at: z.int(),
  ...Completeness.shape,
  status: z.literal(`blocked_${MISSING_STORE}`),
  current_blocker: z.strictObject({
    code: z.literal(MISSING_STORE),
    detail: z.string(),
    proofs_at_risk: z
      .int()
      .meta({ description: "Retained proofs that a window reset of a deploy, or the loss of Redis, would delete." }),
  }),
  required_store: z.strictObject({
    name: z.literal("durable_session_proof_store"),
    configured: z.literal(false),
    must: z.array(z.string()),
  }),
  current_process_window: CurrentWindow,
  refresh_gate: z.strictObject({
    ...ProofGate.shape,
    reason: GateReason,
    refresh: PostLink,
  }),
  runbook: z.array(
    z.strictObject({
      step: z.int(),
      name: z.string(),
      status: z.enum(RUNBOOK_STATUSES),
      action: z.string(),
    }),
  ),
  next_action: z.string(),
  ...ScopeFlags.shape,
  proof_boundary: ProofBoundaries,
  privacy: Privacy,
});
export type RestartSurvivalCheck = z.infer<typeof RestartSurvivalCheck>;
