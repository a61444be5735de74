import { DISCOVERY_SURFACES } from "./surfaces/discovery.ts";
import { GATEWAY_SURFACES } from "./surfaces/gateway.ts";
import { GUIDE_SURFACES } from "./surfaces/guides.ts";
import { PAGE_SURFACES } from "./surfaces/pages.ts";
import { PROBE_SURFACES } from "./surfaces/probes.ts";
import { REPORT_SURFACES } from "./surfaces/reports.ts";

/**
 * The catalogue: every HTTP surface of the relay, once. The routers are mounted from it, and the documents, the edge
 * and the names in reports are made from it.
 */
export const SURFACES = {
  ...GATEWAY_SURFACES,
  ...DISCOVERY_SURFACES,
  ...PAGE_SURFACES,
  ...REPORT_SURFACES,
  ...GUIDE_SURFACES,
  ...PROBE_SURFACES,
};

/** The first websocket path; `RELAY_ALTERNATE_WS_PATH` is the other. */
export const WEBSOCKET_PATH = "/ws";

/** Operation id of a surface, as in OpenAPI. */
export type SurfaceId = keyof typeof SURFACES;

const OPS_PATHS = /^\/api\/(?:ops(?:\/|$)|diagnostics$|feedback\/summary$)/;
const PUBLIC_PATHS = /^\/api\/public\//;

/**
 * The service that answers an HTTP request, known paths or not, so that a 404 too comes from one place.
 * Source: design, "Paths".
 */
export function serviceOf(method: string, path: string): "gateway" | "ops-reporting" {
  if (OPS_PATHS.test(path)) return "ops-reporting";
  if (PUBLIC_PATHS.test(path) && method !== "POST") return "ops-reporting";
  return "gateway";
}
