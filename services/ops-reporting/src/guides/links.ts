import type { GUIDE_SURFACES } from "relay-protocol/contract/report-surfaces.ts";
import type {
  GuideFrame,
  GuideLinks,
  GuideNext,
  GuideQuery,
  SessionDecision,
} from "relay-protocol/contract/reports/guides.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
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

/** The same with the parameters that it lacks, as a template by RFC 6570. */
export function guideTemplate(
  settings: Addresses,
  guide: GuideId,
  query: GuideQuery,
  missing: readonly (keyof GuideQuery)[],
): string {
  const url = guideUrl(settings, guide, query);
  return `${url}{${url.includes("?") ? "&" : "?"}${missing.join(",")}}`;
}

/** @param decision on the session of the query: one that is unknown has no address. */
export function guideLinks(
  { baseUrl }: Addresses,
  { target_agent_id, session_id }: GuideQuery,
  decision: SessionDecision | null,
): GuideLinks {
  const session = decision === "unknown" ? undefined : session_id;
  return {
    check_online:
      baseUrl +
      SURFACES.checkOnline.path +
      (target_agent_id === undefined ? "{?agent_id}" : `?agent_id=${target_agent_id}`),
    session: baseUrl + SURFACES.readSession.path.replace("{session_id}", session ?? "{session_id}"),
    session_proof_retention: baseUrl + SURFACES.sessionProofRetention.path,
    signing_manifest: baseUrl + SURFACES.signingManifest.path,
    discovery: baseUrl + SURFACES.discoveryIndex.path,
  };
}

/** Which of the addresses still have braces. */
export function templatesOf(links: GuideLinks, { request }: GuideNext): GuideFrame["templates"] {
  const urls = { check_online: links.check_online, session: links.session, next: request?.url ?? "" };
  return (["check_online", "session", "next"] as const).filter((name) => isTemplate(urls[name]));
}

/** The request of a step that reads a link: none while the link is a template. */
export function readOf(url: string): { readonly method?: "GET"; readonly url?: string } {
  return isTemplate(url) ? {} : { method: "GET", url };
}

function isTemplate(url: string): boolean {
  return url.includes("{");
}
