import { DISCOVERY_SURFACES } from "./surfaces/discovery.ts";
import { GATEWAY_SURFACES } from "./surfaces/gateway.ts";
import { GUIDE_SURFACES } from "./surfaces/guides.ts";
import { PACKAGE_SURFACES } from "./surfaces/packages.ts";
import { PAGE_SURFACES } from "./surfaces/pages.ts";
import { PROBE_SURFACES } from "./surfaces/probes.ts";
import { REPORT_SURFACES } from "./surfaces/reports.ts";

/**
 * The catalogue: every HTTP surface of the relay. Routers are mounted from it; documents, the routing of the edge and the
 * names in reports are derived from it.
 */
export const SURFACES = {
  ...GATEWAY_SURFACES,
  ...DISCOVERY_SURFACES,
  ...PACKAGE_SURFACES,
  ...PAGE_SURFACES,
  ...REPORT_SURFACES,
  ...GUIDE_SURFACES,
  ...PROBE_SURFACES,
};

/** Aliases that older clients use; new ones use the main paths. Source: docs/protocol.md#versions. */
export const LEGACY_ALIASES: readonly string[] = ["/api/feedback", "/api/feedback/summary"];

/** The first websocket path; `RELAY_ALTERNATE_WS_PATH` is the other. */
export const WEBSOCKET_PATH = "/ws";

/** Operation id of a surface, as in OpenAPI. */
export type SurfaceId = keyof typeof SURFACES;

const OPS_PATHS = /^\/api\/(?:ops(?:\/|$)|diagnostics$|feedback\/summary$)/;
const PUBLIC_PATHS = /^\/api\/public\//;

/**
 * The service that answers an HTTP request; also for unknown paths, so that each 404 has one service too.
 * Source: docs/architecture.md#endpoints.
 */
export function serviceOf(method: string, path: string): "gateway" | "ops-reporting" {
  if (OPS_PATHS.test(path)) return "ops-reporting";
  if (PUBLIC_PATHS.test(path) && method !== "POST") return "ops-reporting";
  return "gateway";
}
