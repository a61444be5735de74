import type { OperatorQuickScan } from "relay-protocol/contract/reports/common.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf } from "./activation.ts";
import { sessionCounts } from "./current-window.ts";
import { proofGate } from "./proof-freshness.ts";

/** The figures that an operator reads first, the same in every report. Pure. @param headline of the report that shows it. */
export function operatorQuickScan(
  source: ReportSource<"presence">,
  settings: ReportSettings,
  headline: string,
): OperatorQuickScan {
  const { presence } = source;
  const { bottleneck, nextAction, freshness } = activationOf(source, settings);
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
