/** What of an HTTPRoute of Gateway API the routes here use. */
export interface HttpRoute {
  readonly spec?: { readonly rules?: readonly RouteRule[] };
}

export interface RouteRule {
  readonly matches?: readonly RouteMatch[];
  readonly filters?: readonly unknown[];
  readonly timeouts?: { readonly request?: string };
  readonly backendRefs?: readonly { readonly name: string; readonly port?: number }[];
}

interface RouteMatch {
  readonly path?: { readonly type?: string; readonly value?: string };
  readonly method?: string;
}

/** Above every prefix. */
const EXACT_RANK = 10_000;

/**
 * The rule that an edge applies to a request: that of an exact path before that of a prefix, the longer prefix before the
 * shorter, and of the same path that which names the method.
 * Source: Gateway API, HTTPRouteRule.
 *
 * @throws {Error} when two rules have the same claim, which only their age decides
 */
export function ruleFor(routes: readonly HttpRoute[], method: string, path: string): RouteRule | undefined {
  const claims = routes
    .flatMap(({ spec }) => spec?.rules ?? [])
    .flatMap((rule) =>
      (rule.matches ?? []).filter((match) => fits(match, method, path)).map((match) => ({ rule, rank: rankOf(match) })),
    );
  const best = Math.max(...claims.map(({ rank }) => rank));
  const [rule, ...rivals] = new Set(claims.filter(({ rank }) => rank === best).map((claim) => claim.rule));
  if (rivals.length > 0) throw new Error(`Two rules claim ${method} ${path}.`);
  return rule;
}

/** The Service that a request goes to. */
export function backendOf(routes: readonly HttpRoute[], method: string, path: string): string | undefined {
  const [backend, ...others] = ruleFor(routes, method, path)?.backendRefs ?? [];
  if (others.length > 0) throw new Error("A rule has one backend here.");
  return backend?.name;
}

function fits({ path: { type, value = "/" } = {}, method }: RouteMatch, asked: string, path: string): boolean {
  if (method !== undefined && method !== asked) return false;
  if (type === "Exact") return path === value;
  if (type !== "PathPrefix") throw new Error(`Paths are Exact or PathPrefix here, not ${type}.`);
  return isBelow(path, value);
}

/** A prefix is of whole segments, in Gateway API and in an Ingress. */
export function isBelow(path: string, prefix: string): boolean {
  return prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);
}

function rankOf({ path: { type, value = "/" } = {}, method }: RouteMatch): number {
  return (type === "Exact" ? EXACT_RANK : 2 * value.length) + (method === undefined ? 0 : 1);
}
