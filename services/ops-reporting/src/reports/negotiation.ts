import type { ActivationStatus } from "@agent-relay/shared/contract/reports/session-proof-retention.ts";
import type { Bottleneck, OperatorQuickScan } from "@agent-relay/shared/contract/reports/window.ts";
import { fleetAdvice } from "@agent-relay/shared/http/readiness.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { sessionCounts } from "./current-window.ts";
import { type ProofFreshness, proofFreshness, proofGate } from "./proof-freshness.ts";
import { count, lasting } from "./wording.ts";

/** How far the window has come on the way to a proof that carries a handoff, and what to do next. */
export interface Negotiation {
  readonly activation: ActivationStatus;
  readonly bottleneck: Bottleneck;
  readonly nextAction: string;
  readonly freshness: ProofFreshness;
}

/**
 * The one judgement that every report's advice about sessions follows. A proof outweighs the counters: it may come from a
 * websocket, whose session requests these do not count. Pure.
 */
export function negotiationOf(source: ReportSource, settings: Pick<ReportSettings, "proofFreshnessMs">): Negotiation {
  const { presence, proofs } = source;
  const freshness = proofFreshness(source, settings.proofFreshnessMs);
  const anyOnline = presence.ok > 0;
  if (freshness.state === "fresh") {
    return {
      activation: "proof_fresh",
      bottleneck: "missing_durable_session_proof_store",
      nextAction:
        `The proof carries a negotiation handoff for ${lasting(freshness.msUntilRefreshDue ?? 0)} more: hand off before that and ` +
        "before a restart, which would lose it.",
      freshness,
    };
  }
  if (freshness.state === "stale_refresh_due") {
    return {
      activation: "proof_stale_refresh_due",
      bottleneck: "session_proof_stale",
      nextAction: `The last proof expired ${lasting(freshness.staleByMs ?? 0)} ago; refresh it. ${fleetAdvice(presence)}`,
      freshness,
    };
  }
  const requests = Math.max(sessionCounts(source).simple_session_request_accepted, proofs.length);
  if (requests > 0) {
    return {
      activation: "waiting_for_online_target",
      bottleneck: "session_requests_only_to_offline_targets",
      nextAction: `${count(requests, "session request")} accepted, none to an online target. ${fleetAdvice(presence)}`,
      freshness,
    };
  }
  return {
    activation: anyOnline ? "waiting_for_session_request" : "waiting_for_connector",
    bottleneck: anyOnline ? "no_session_request_accepted" : "no_connector_online",
    nextAction: fleetAdvice(presence),
    freshness,
  };
}

/** What an operator sees first. Pure. @param headline of the report that shows it. */
export function quickScan(source: ReportSource, settings: ReportSettings, headline: string): OperatorQuickScan {
  const { presence } = source;
  const { bottleneck, nextAction, freshness } = negotiationOf(source, settings);
  const { simple_session_request_accepted, accepted_to_online_target, accepted_to_offline_target } =
    sessionCounts(source);
  const { proof_freshness, refresh_urgency, ms_until_refresh_due } = proofGate(freshness, settings.proofFreshnessMs);
  return {
    headline,
    online_agents: presence.ok,
    stale_agents: presence.stale + presence.critical_stale,
    simple_session_request_accepted,
    accepted_to_online_target,
    accepted_to_offline_target,
    proof_freshness,
    refresh_urgency,
    ms_until_refresh_due,
    current_bottleneck: bottleneck,
    next_action: nextAction,
  };
}

/** The proof in one sentence. Pure. */
export function proofHeadline({ state, msUntilRefreshDue, staleByMs }: ProofFreshness): string {
  if (state === "none") return "No session request to an online target was accepted in this window.";
  if (state === "fresh") return `The online-target proof is fresh for ${lasting(msUntilRefreshDue ?? 0)} more.`;
  return `The online-target proof has been stale for ${lasting(staleByMs ?? 0)}.`;
}
