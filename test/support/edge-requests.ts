import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";

/** Requests whose way through an edge is compared with `serviceOf`. */

export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] as const;

const surfaces: readonly Surface[] = Object.values(SURFACES);
const surfacePaths = surfaces
  .flatMap(({ path, aliases }) => [path, ...aliases])
  .map((path) => path.replace(/\{\w+\}/g, "ses_0123456789abcdefghjkmnpqrs"));

/** Paths that nobody knows, near those that somebody does. */
const STRAY_PATHS = [
  ...["/api", "/api/", "/api/ops", "/api/ops/", "/api/ops/nothing", "/api/opsx", "/API/ops/traffic-daily"],
  ...["/api/public", "/api/public/", "/api/public/nothing", "/api/publicx/feedback", "/x/api/ops/traffic-daily"],
  ...["/api/diagnostics/", "/api/diagnosticsx", "/api/feedback", "/api/feedback/", "/api/feedback/summary/x"],
  ...["/metrics", "/nothing", "/ws/", "/wsx", "/x/ws", "/relay/", "/relays", "/WS", "/health/", "/sessions/"],
  ...["/%2e%2e", "/favicon.ico"],
];

/** Every path of the catalogue, and strays. */
export const EDGE_PATHS: readonly string[] = [...new Set([...surfacePaths, ...STRAY_PATHS])];
