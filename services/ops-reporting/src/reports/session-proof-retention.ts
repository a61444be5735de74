import { DURABLE_WINDOW, PROOF_PRIVACY, SCOPE_FLAGS } from "relay-protocol/contract/reports/common.ts";
import { RETENTION_STATUS, type SessionProofRetention } from "relay-protocol/contract/reports/traffic.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf, operatorQuickScan } from "./activation.ts";
import {
  completenessOf,
  currentWindow,
  quantity,
  sessionCounts,
  sessionMonitorsOf,
  sessionRequests,
} from "./figures.ts";
import {
  PROOF_BOUNDARIES,
  type ProofFreshness,
  proofGate,
  proofHeadline,
  recentSessionProofs,
} from "./session-proofs.ts";

/** The retained proofs of accepted session requests, and whether they permit a handoff. Pure. */
export function sessionProofRetention(
  source: ReportSource<"presence">,
  settings: ReportSettings,
): SessionProofRetention {
  const { status, bottleneck, nextAction, freshness } = activationOf(source, settings);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.sessionProofRetention.path,
    generated_at: source.now,
    ...completenessOf(source),
    status: RETENTION_STATUS,
    activation_status: status,
    current_bottleneck: bottleneck,
    next_operator_action: nextAction,
    ...sessionCounts(source),
    ...SCOPE_FLAGS,
    ...proofGate(freshness, settings.proofFreshnessMs),
    operator_quick_scan: operatorQuickScan(source, settings, proofHeadline(freshness)),
    activation_check: activationCheck(source, freshness),
    durability: {
      status: RETENTION_STATUS,
      survives_restart: { service_restart: true, deploy_window_reset: false, loss_of_redis: false },
      retention_limit: SESSION_LIMITS.retainedProofs,
      note: "Proofs are kept in the process window, in Redis. A relay that brings its own Redis, as `npm start` does, loses it when it stops.",
    },
    current_window: currentWindow(source),
    durable_window: DURABLE_WINDOW,
    recent_session_proofs: recentSessionProofs(source, settings),
    proof_boundaries: PROOF_BOUNDARIES,
    monitors: sessionMonitorsOf(source),
    privacy: PROOF_PRIVACY[settings.proofIdentities],
  };
}

function activationCheck(
  source: ReportSource<"presence">,
  freshness: ProofFreshness,
): SessionProofRetention["activation_check"] {
  const { presence, proofs } = source;
  const { accepted, byGateway, overWebsockets } = sessionRequests(source);
  const inWindow = [
    { check: "connector_online_now", passed: presence.ok > 0, observed: quantity(presence.ok, "agent") },
    {
      check: "session_request_accepted",
      passed: accepted > 0 || proofs.length > 0,
      observed: `${quantity(accepted, "request")} (${byGateway} through the gateway, ${overWebsockets} over websockets), ${quantity(proofs.length, "retained proof")}`,
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
