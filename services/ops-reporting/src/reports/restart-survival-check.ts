import { SESSION_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { PRIVACY, SCOPE_FLAGS } from "@agent-relay/shared/contract/reports/common.ts";
import type { RestartSurvivalCheck } from "@agent-relay/shared/contract/reports/restart-survival-check.ts";
import type { ProofState } from "@agent-relay/shared/contract/reports/window.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { currentWindow } from "./current-window.ts";
import { negotiationOf } from "./negotiation.ts";
import { proofGate } from "./proof-freshness.ts";
import { PROOF_BOUNDARIES } from "./session-proofs.ts";
import { count } from "./wording.ts";

type Runbook = RestartSurvivalCheck["runbook"];

const BLOCKED = "blocked_missing_durable_session_proof_store";

const PROOF_STEP: Readonly<Record<ProofState, Runbook[number]["status"]>> = {
  none: "blocked_no_online_target_proof",
  stale_refresh_due: "blocked_stale_online_target_proof",
  fresh: "passed_fresh_online_target_proof",
};

/** What a restart would leave of the session proofs, and what to do about it. Pure. */
export function restartSurvivalCheck(source: ReportSource, settings: ReportSettings): RestartSurvivalCheck {
  const { freshness, nextAction } = negotiationOf(source, settings);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.restartSurvivalCheck.path,
    generated_at: source.now,
    status: BLOCKED,
    current_blocker: {
      code: "missing_durable_session_proof_store",
      detail: "No durable store is configured: proofs end with the process window.",
      proofs_at_risk: source.proofs.length,
    },
    required_store: {
      name: "durable_session_proof_store",
      configured: false,
      must: [
        "Outlive a deploy and the loss of Redis.",
        `Keep the ids, times and delivery status of at least ${SESSION_LIMITS.retainedProofs} proofs, never contents.`,
        "Keep the last acceptance to an online target apart from these.",
      ],
    },
    current_process_window: currentWindow(source),
    refresh_gate: {
      ...proofGate(freshness, settings.proofFreshnessMs),
      refresh: { method: "POST", url: settings.baseUrl + SURFACES.requestSession.path },
    },
    runbook: runbook(PROOF_STEP[freshness.state], nextAction),
    next_action: `${count(source.proofs.length, "proof")} would not survive a restart. ${nextAction}`,
    ...SCOPE_FLAGS,
    proof_boundary: PROOF_BOUNDARIES,
    privacy: PRIVACY,
  };
}

function runbook(proofStatus: Runbook[number]["status"], nextAction: string): Runbook {
  return [
    { step: 1, name: "hold_a_fresh_proof_in_this_window", status: proofStatus, action: nextAction },
    {
      step: 2,
      name: "configure_a_durable_session_proof_store",
      status: BLOCKED,
      action: "The relay has no such store yet; until it has, every step after this one waits.",
    },
    {
      step: 3,
      name: "restart_and_compare",
      status: BLOCKED,
      action: "Restart, then compare window_started_at and the proofs with those from before.",
    },
    {
      step: 4,
      name: "request_again_after_a_restart",
      status: "due_after_every_restart",
      action: `Until a proof survives: POST ${SURFACES.requestSession.path} to an online target.`,
    },
  ];
}
