import { GATEWAY_KEY_LIMITS, WINDOW_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { PRIVACY, SCOPE_FLAGS } from "@agent-relay/shared/contract/reports/common.ts";
import type { Diagnostics } from "@agent-relay/shared/contract/reports/diagnostics.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { WindowSnapshot } from "@agent-relay/shared/window/snapshot.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { blockerCounts } from "./feedback-counts.ts";
import { negotiationOf } from "./negotiation.ts";
import { proofGate } from "./proof-freshness.ts";
import { PROOF_BOUNDARIES } from "./session-proofs.ts";
import { totalsOf } from "./totals.ts";

const MINUTE_MS = 60_000;

/** The state of the relay in aggregates. Pure. @param gateways how many gateway keys are listed. */
export function diagnostics(source: ReportSource, gateways: number, settings: ReportSettings): Diagnostics {
  const { now, windowStartedAt, feedback } = source;
  const { bottleneck, nextAction, freshness } = negotiationOf(source, settings);
  const byMinute = publishedByMinute(source);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.diagnostics.path,
    scope: "process_window",
    window_started_at: windowStartedAt,
    generated_at: now,
    window: {
      window_id: source.windowId,
      window_started_at_iso: new Date(windowStartedAt).toISOString(),
      window_age_ms: Math.max(0, now - windowStartedAt),
    },
    presence: presenceCounts(source),
    counters: totalsOf(source),
    published_envelopes_by_minute: byMinute,
    published_envelopes_last_5_minutes: byMinute.slice(-5).reduce((sum, { count }) => sum + count, 0),
    proofs: { retained: source.proofs.length, ...proofGate(freshness, settings.proofFreshnessMs) },
    gateways: { live: gateways, listed_for_ms: GATEWAY_KEY_LIMITS.listedForMs },
    feedback: {
      total: feedback.get("total") ?? 0,
      message_provided: feedback.get("message_provided") ?? 0,
      blocked: feedback.get("sentiment:blocked") ?? 0,
      connector_session_blockers: blockerCounts(feedback),
    },
    current_bottleneck: gateways === 0 ? "no_gateway_live" : bottleneck,
    next_action: gateways === 0 ? NO_GATEWAY : nextAction,
    ...SCOPE_FLAGS,
    proof_boundaries: PROOF_BOUNDARIES,
    privacy: PRIVACY,
  };
}

const NO_GATEWAY =
  "No gateway has announced its key lately: start a gateway, without which nobody can send or request sessions over HTTP.";

function presenceCounts({ presence }: ReportSource): Diagnostics["presence"] {
  const { ok, stale, critical_stale, offline } = presence;
  return {
    online_agents: ok,
    stale_agents: stale + critical_stale,
    critical_stale_agents: critical_stale,
    offline_agents: offline,
  };
}

/** The last 60 minutes, oldest first, those without any included. Pure. */
export function publishedByMinute({
  minutes,
  now,
}: Pick<WindowSnapshot, "minutes" | "now">): Diagnostics["published_envelopes_by_minute"] {
  const first = Math.floor(now / MINUTE_MS) - WINDOW_LIMITS.minutes + 1;
  return Array.from({ length: WINDOW_LIMITS.minutes }, (_, index) => ({
    minute_started_at: (first + index) * MINUTE_MS,
    count: minutes.get(String(first + index)) ?? 0,
  }));
}
