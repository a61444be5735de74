import type { Surface } from "@agent-relay/shared/contract/surface.ts";
import { SURFACES, type SurfaceId, WEBSOCKET_PATH } from "@agent-relay/shared/contract/surfaces.ts";

/** Addresses of surfaces, always from the settings: the Host header is the client's to write. */

export type Group = Surface["group"];

/** The catalogue as a list, in its own order. */
export const CATALOGUE = Object.entries(SURFACES) as unknown as readonly (readonly [SurfaceId, Surface])[];

/** True for what can be read by its address alone. */
export function isPlainRead({ method, path, query }: Surface): boolean {
  return method === "GET" && !path.includes("{") && (query === null || query.safeParse({}).success);
}

export function urlOf(baseUrl: string, id: SurfaceId): string {
  return baseUrl + SURFACES[id].path;
}

/** Addresses of all surfaces that can be read as they are, or of those of some groups, by operation id. */
export function linksOf(baseUrl: string, groups?: readonly Group[]): Record<string, string> {
  const listed = CATALOGUE.filter(([, surface]) => isPlainRead(surface) && (groups?.includes(surface.group) ?? true));
  return Object.fromEntries(listed.map(([id, { path }]) => [id, baseUrl + path]));
}

/** RFC 6570 templates of the reads that need a parameter, by operation id. */
export function linkTemplatesOf(baseUrl: string): Record<string, string> {
  const listed = CATALOGUE.filter(([, surface]) => surface.method === "GET" && !isPlainRead(surface));
  return Object.fromEntries(listed.map(([id, surface]) => [id, baseUrl + surface.path + queryTemplate(surface)]));
}

function queryTemplate({ query }: Surface): string {
  const names = query === null ? [] : Object.keys((query as unknown as { shape: object }).shape);
  return names.length === 0 ? "" : `{?${names.join(",")}}`;
}

export function websocketUrls({ wsUrl, alternateWsPath }: { wsUrl: string; alternateWsPath: string }): string[] {
  return [wsUrl + WEBSOCKET_PATH, wsUrl + alternateWsPath];
}
