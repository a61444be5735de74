import type { Bottleneck } from "relay-protocol/contract/reports/common.ts";
import type { ActivationStatus } from "relay-protocol/contract/reports/traffic.ts";
import { fleetAdvice } from "relay-window/window/readiness.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { duration, quantity } from "./format.ts";
import { type ProofFreshness, proofFreshness } from "./proof-freshness.ts";
import { PROOFS_END } from "./session-proofs.ts";
import { sessionRequests } from "./totals.ts";

/** How far the window has come towards a fresh session proof, what keeps it from going on, and what to do next. */
export interface Activation {
  readonly status: ActivationStatus;
  readonly bottleneck: Bottleneck;
  readonly nextAction: string;
  readonly freshness: ProofFreshness;
}

/**
 * Computed in this one place for all reports and guides. Pure.
 */
export function activationOf(
  source: ReportSource<"presence">,
  settings: Pick<ReportSettings, "proofFreshnessMs">,
): Activation {
  const { presence, proofs } = source;
  const freshness = proofFreshness(source, settings.proofFreshnessMs);
  const anyOnline = presence.ok > 0;
  const fleet = fleetAdvice(presence, source);
  if (freshness.state === "fresh") {
    const freshFor = `The last request that reached an online target, whoever sent it, is a fresh proof for another ${duration(freshness.msUntilRefreshDue ?? 0)}. ${PROOFS_END}`;
    return {
      status: "proof_fresh",
      bottleneck: anyOnline ? "none" : "no_connector_online",
      nextAction: anyOnline
        ? `${freshFor} It says nothing of a decision: read the handoff gate with your target_agent_id and session_id.`
        : `${fleet} ${freshFor}`,
      freshness,
    };
  }
  if (freshness.state === "stale_refresh_due") {
    return {
      status: "proof_stale_refresh_due",
      bottleneck: "session_proof_stale",
      nextAction: `The last proof expired ${duration(freshness.staleByMs ?? 0)} ago; refresh it. ${fleet}`,
      freshness,
    };
  }
  const requests = Math.max(sessionRequests(source).accepted, proofs.length);
  if (requests > 0) {
    return {
      status: "waiting_for_online_target",
      bottleneck: "session_requests_only_to_offline_targets",
      nextAction: `${quantity(requests, "session request")} accepted, none to an online target. ${fleet}`,
      freshness,
    };
  }
  return {
    status: anyOnline ? "waiting_for_session_request" : "waiting_for_connector",
    bottleneck: anyOnline ? "no_session_request_accepted" : "no_connector_online",
    nextAction: fleet,
    freshness,
  };
}
