import type { GuideFrame, GuideLinks, GuideQuery } from "protocol/contract/reports/guides.ts";
import type { GUIDE_SURFACES } from "protocol/contract/surfaces/guides.ts";
import { SURFACES } from "protocol/contract/surfaces.ts";
import type { OpsReportingSettings } from "../settings.ts";

export type GuideId = keyof typeof GUIDE_SURFACES;
type Addresses = Pick<OpsReportingSettings, "baseUrl">;

/**
 * URL of a guide with the query that was asked with; of the settings, never of the Host header, which the client writes.
 * Agent and session ids need no escaping in a query.
 */
export function guideUrl({ baseUrl }: Addresses, guide: GuideId, query: GuideQuery): string {
  const named = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = named.map(([name, value]) => `${name}=${value}`).join("&");
  return baseUrl + SURFACES[guide].path + (text === "" ? "" : `?${text}`);
}

export function guideLinks({ baseUrl }: Addresses, { target_agent_id, session_id }: GuideQuery): GuideLinks {
  return {
    check_online:
      baseUrl +
      SURFACES.checkOnline.path +
      (target_agent_id === undefined ? "{?agent_id}" : `?agent_id=${target_agent_id}`),
    session: baseUrl + SURFACES.readSession.path.replace("{session_id}", session_id ?? "{session_id}"),
    session_proof_retention: baseUrl + SURFACES.sessionProofRetention.path,
    signing_manifest: baseUrl + SURFACES.signingManifest.path,
    discovery: baseUrl + SURFACES.discoveryIndex.path,
  };
}

/** The links that still have braces. */
export function templatesOf({ target_agent_id, session_id }: GuideQuery): GuideFrame["templates"] {
  return [
    ...(target_agent_id === undefined ? (["check_online"] as const) : []),
    ...(session_id === undefined ? (["session"] as const) : []),
  ];
}

/** The request of a step that reads a link: none while the link is a template. */
export function readOf(url: string): { readonly method?: "GET"; readonly url?: string } {
  return url.includes("{") ? {} : { method: "GET", url };
}
