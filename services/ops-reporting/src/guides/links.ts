import { type GuideLinks, TARGET_PLACEHOLDER } from "@agent-relay/shared/contract/reports/guides.ts";
import { SURFACES, WEBSOCKET_PATH } from "@agent-relay/shared/contract/surfaces.ts";
import type { OpsReportingSettings } from "../settings.ts";

export type Addresses = Pick<OpsReportingSettings, "baseUrl" | "wsUrl">;

/** Links by the settings, never by the Host header, which the client writes. Agent ids need no escaping in a query. */
export function guideLinks({ baseUrl, wsUrl }: Addresses, target: string): GuideLinks {
  const query = target === TARGET_PLACEHOLDER ? "" : `?target_agent_id=${target}`;
  return {
    activation_plan: `${baseUrl}${SURFACES.activationPlan.path}${query}`,
    session_request_guide: `${baseUrl}${SURFACES.sessionRequestGuide.path}${query}`,
    session_request_refresh_packet: `${baseUrl}${SURFACES.sessionRequestRefreshPacket.path}${query}`,
    ecosystem_handoff: `${baseUrl}${SURFACES.ecosystemHandoff.path}${query}`,
    marketplace_first_job_handoff: `${baseUrl}${SURFACES.marketplaceFirstJobHandoff.path}${query}`,
    marketplace_handoff_status: `${baseUrl}${SURFACES.marketplaceHandoffStatus.path}${query}`,
    check_online: `${baseUrl}${SURFACES.checkOnline.path}?agent_id=${target}`,
    online_agents: baseUrl + SURFACES.onlineAgents.path,
    session_request: baseUrl + SURFACES.requestSession.path,
    session: baseUrl + SURFACES.readSession.path,
    session_proof_retention: baseUrl + SURFACES.sessionProofRetention.path,
    traffic_daily: baseUrl + SURFACES.trafficDaily.path,
    self_test: baseUrl + SURFACES.selfTest.path,
    signing_manifest: baseUrl + SURFACES.signingManifest.path,
    feedback: baseUrl + SURFACES.submitFeedback.path,
    websocket: wsUrl + WEBSOCKET_PATH,
  };
}
