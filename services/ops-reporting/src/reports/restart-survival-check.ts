import type { RestartSurvivalCheck } from "relay-protocol/contract/reports/checks.ts";
import { PRIVACY, type ProofState, SCOPE_FLAGS } from "relay-protocol/contract/reports/common.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf } from "./activation.ts";
import { completenessOf, currentWindow, quantity } from "./figures.ts";
import { PROOF_BOUNDARIES, proofGate, proofHeadline } from "./session-proofs.ts";

type Runbook = RestartSurvivalCheck["runbook"];

const ENDS =
  "A deploy that resets the window, or the loss of Redis, deletes proofs; a restart of a service does not, unless it brings its own Redis, as `npm start` does.";

const BLOCKED = "blocked_missing_durable_session_proof_store";

const PROOF_STEP: Readonly<Record<ProofState, Runbook[number]["status"]>> = {
  none: "blocked_no_online_target_proof",
  stale_refresh_due: "blocked_stale_online_target_proof",
  fresh: "passed_fresh_online_target_proof",
};

/** What ends session proofs (there is no durable store), which would be gone then, and what to do about it. Pure. */
export function restartSurvivalCheck(source: ReportSource<"presence">, settings: ReportSettings): RestartSurvivalCheck {
  const { freshness, nextAction } = activationOf(source, settings);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.restartSurvivalCheck.path,
    generated_at: source.now,
    ...completenessOf(source),
    status: BLOCKED,
    current_blocker: {
      code: "missing_durable_session_proof_store",
      detail: `The relay has no durable store, and no setting adds one. ${ENDS}`,
      proofs_at_risk: source.proofs.length,
    },
    required_store: {
      name: "durable_session_proof_store",
      configured: false,
      must: [
        "Outlive a deploy and the loss of Redis.",
        `Keep the ids, times and delivery status of at least ${SESSION_LIMITS.retainedProofs} proofs, never contents.`,
        "Keep the last acceptance to an online target apart from them.",
      ],
    },
    current_process_window: currentWindow(source),
    refresh_gate: {
      ...proofGate(freshness, settings.proofFreshnessMs),
      reason: proofHeadline(freshness),
      refresh: { method: "POST", url: settings.baseUrl + SURFACES.requestSession.path },
    },
    runbook: runbook(PROOF_STEP[freshness.state], nextAction),
    next_action: `${quantity(source.proofs.length, "proof")} at risk. ${ENDS} ${nextAction}`,
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
      action: "Nothing to do: the relay has no such store, and no setting adds one. Go on with the next step.",
    },
    {
      step: 3,
      name: "compare_the_window",
      status: "due_before_every_handoff",
      action: "Compare window_started_at with the one of your proof: another one means that the proof is gone.",
    },
    {
      step: 4,
      name: "request_again_in_a_new_window",
      status: "due_in_every_new_window",
      action: `POST ${SURFACES.requestSession.path} to an online target.`,
    },
  ];
}
