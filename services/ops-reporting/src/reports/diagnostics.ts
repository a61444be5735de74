import type { Diagnostics } from "relay-protocol/contract/reports/checks.ts";
import { PRIVACY, SCOPE_FLAGS } from "relay-protocol/contract/reports/common.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { GATEWAY_KEY_LIMITS } from "relay-protocol/wire/limits.ts";
import { fleetAdvice } from "relay-window/window/readiness.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf } from "./activation.ts";
import { blockerCounts, completenessOf, publishedByMinute, totalsOf } from "./figures.ts";
import { PROOF_BOUNDARIES, proofGate } from "./session-proofs.ts";

type Source = ReportSource<"presence" | "gatewayKeys" | "connections">;

/** The state of the relay in aggregates. Pure. */
export function diagnostics(source: Source, settings: ReportSettings): Diagnostics {
  const { now, windowStartedAt, feedback } = source;
  const gateways = source.gatewayKeys.length;
  const { bottleneck, freshness } = activationOf(source, settings);
  const byMinute = publishedByMinute(source);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.diagnostics.path,
    scope: "process_window",
    window_started_at: windowStartedAt,
    generated_at: now,
    ...completenessOf(source),
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
    next_action: nextActionOf(source, settings),
    ...SCOPE_FLAGS,
    proof_boundaries: PROOF_BOUNDARIES,
    privacy: PRIVACY,
  };
}

const NO_GATEWAY =
  "No gateway has announced its key recently: start a gateway. Without one nobody can send messages or request sessions over HTTP.";

/** Connections without anybody online are a fault of a client that no other report can see. */
function nextActionOf(source: Source, settings: ReportSettings): string {
  const { gatewayKeys, presence, connections } = source;
  if (gatewayKeys.length === 0) return NO_GATEWAY;
  if (presence.ok === 0 && connections > 0) return fleetAdvice(presence, source, connections);
  return activationOf(source, settings).nextAction;
}

function presenceCounts({ presence, connections }: Source): Diagnostics["presence"] {
  const { ok, stale, critical_stale, offline } = presence;
  return {
    online_agents: ok,
    stale_agents: stale + critical_stale,
    critical_stale_agents: critical_stale,
    offline_agents: offline,
    connections,
  };
}
