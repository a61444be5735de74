import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";

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

/** The surfaces that answer 404 on a relay without packages: it links them nowhere. */
const OF_PACKAGES: readonly SurfaceId[] = ["newestConnector", "packageFile"];

/** The catalogue of this relay. */
export function offeredBy({ packagesDir }: { readonly packagesDir: string | undefined }): typeof CATALOGUE {
  return packagesDir === undefined ? CATALOGUE.filter(([id]) => !OF_PACKAGES.includes(id)) : CATALOGUE;
}

/** URLs of the surfaces that can be read without parameters, by operation id. */
export function linksOf(baseUrl: string, surfaces: typeof CATALOGUE): Record<string, string> {
  const listed = surfaces.filter(([, surface]) => isPlainRead(surface));
  return Object.fromEntries(listed.map(([id, { path }]) => [id, baseUrl + path]));
}

/** The same of the surfaces in some groups. */
export function linksIn(groups: readonly Group[], baseUrl: string): Record<string, string> {
  return linksOf(
    baseUrl,
    CATALOGUE.filter(([, { group }]) => groups.includes(group)),
  );
}

/** RFC 6570 templates of the surfaces that need a parameter, by operation id. */
export function linkTemplatesOf(baseUrl: string, surfaces: typeof CATALOGUE): Record<string, string> {
  const listed = surfaces.filter(([, surface]) => surface.method === "GET" && !isPlainRead(surface));
  return Object.fromEntries(listed.map(([id, surface]) => [id, baseUrl + surface.path + queryTemplate(surface)]));
}

function queryTemplate({ query }: Surface): string {
  const names = query === null ? [] : Object.keys((query as unknown as { shape: object }).shape);
  return names.length === 0 ? "" : `{?${names.join(",")}}`;
}

export function websocketUrls({ wsUrl, alternateWsPath }: { wsUrl: string; alternateWsPath: string }): string[] {
  return [wsUrl + WEBSOCKET_PATH, wsUrl + alternateWsPath];
}
