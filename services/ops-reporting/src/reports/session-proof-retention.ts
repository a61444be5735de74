import { SESSION_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { PRIVACY, SCOPE_FLAGS } from "@agent-relay/shared/contract/reports/common.ts";
import {
  RETENTION_STATUS,
  type SessionProofRetention,
} from "@agent-relay/shared/contract/reports/session-proof-retention.ts";
import { DURABLE_WINDOW } from "@agent-relay/shared/contract/reports/window.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { currentWindow, sessionCounts } from "./current-window.ts";
import { negotiationOf, proofHeadline, quickScan } from "./negotiation.ts";
import { type ProofFreshness, proofGate } from "./proof-freshness.ts";
import { PROOF_BOUNDARIES, recentSessionProofs } from "./session-proofs.ts";
import { sessionMonitorsOf } from "./totals.ts";
import { count } from "./wording.ts";

/** What is retained of accepted session requests, and whether it carries a handoff. Pure. */
export function sessionProofRetention(source: ReportSource, settings: ReportSettings): SessionProofRetention {
  const { activation, bottleneck, nextAction, freshness } = negotiationOf(source, settings);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.sessionProofRetention.path,
    generated_at: source.now,
    status: RETENTION_STATUS,
    activation_status: activation,
    current_bottleneck: bottleneck,
    next_operator_action: nextAction,
    ...sessionCounts(source),
    ...SCOPE_FLAGS,
    ...proofGate(freshness, settings.proofFreshnessMs),
    operator_quick_scan: quickScan(source, settings, proofHeadline(freshness)),
    activation_check: activationCheck(source, freshness),
    durability: {
      status: RETENTION_STATUS,
      survives_restart: false,
      retention_limit: SESSION_LIMITS.retainedProofs,
      note: "Proofs are kept in the process window alone: a deploy, or the loss of Redis, ends it and them.",
    },
    current_window: currentWindow(source),
    durable_window: DURABLE_WINDOW,
    recent_session_proofs: recentSessionProofs(source, settings.proofFreshnessMs),
    proof_boundaries: PROOF_BOUNDARIES,
    monitors: sessionMonitorsOf(source),
    privacy: PRIVACY,
  };
}

function activationCheck(source: ReportSource, freshness: ProofFreshness): SessionProofRetention["activation_check"] {
  const { presence, proofs } = source;
  const requests = sessionCounts(source).simple_session_request_accepted;
  const inWindow = [
    { check: "connector_online_now", passed: presence.ok > 0, observed: count(presence.ok, "agent") },
    {
      check: "session_request_accepted",
      passed: requests > 0 || proofs.length > 0,
      observed: `${count(requests, "request")} through the gateway, ${count(proofs.length, "retained proof")}`,
    },
    {
      check: "online_target_proof_present",
      passed: freshness.state !== "none",
      observed: freshness.acceptedAt === null ? "none" : new Date(freshness.acceptedAt).toISOString(),
    },
    { check: "online_target_proof_fresh", passed: freshness.state === "fresh", observed: proofHeadline(freshness) },
  ] as const;
  return {
    process_window_passed: inWindow.every(({ passed }) => passed),
    checks: [...inWindow, { check: "durable_session_proof_store_configured", passed: false, observed: "none" }],
  };
}
