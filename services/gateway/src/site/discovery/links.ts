import type { Surface } from "protocol/contract/surface.ts";
import { SURFACES, type SurfaceId, WEBSOCKET_PATH } from "protocol/contract/surfaces.ts";

/** URLs of surfaces, always made from the settings, never from the Host header, which the client writes. */

export type Group = Surface["group"];

/** The catalogue as a list, in its order. */
export const CATALOGUE = Object.entries(SURFACES) as unknown as readonly (readonly [SurfaceId, Surface])[];

/** True for a surface that can be read without parameters. */
export function isPlainRead({ method, path, query }: Surface): boolean {
  return method === "GET" && !path.includes("{") && (query === null || query.safeParse({}).success);
}

export function urlOf(baseUrl: string, id: SurfaceId): string {
  return baseUrl + SURFACES[id].path;
}

/** URLs of all surfaces that can be read without parameters, or of those in some groups, by operation id. */
export function linksOf(baseUrl: string, groups?: readonly Group[]): Record<string, string> {
  const listed = CATALOGUE.filter(([, surface]) => isPlainRead(surface) && (groups?.includes(surface.group) ?? true));
  return Object.fromEntries(listed.map(([id, { path }]) => [id, baseUrl + path]));
}

/** RFC 6570 templates of the surfaces that need a parameter, by operation id. */
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
