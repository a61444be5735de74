import Router, { type RouterMiddleware } from "@koa/router";
import type Koa from "koa";
import type { z } from "zod";
import { RelayError } from "../contract/errors.ts";
import type { ServiceName, Surface } from "../contract/surface.ts";
import { SURFACES, type SurfaceId } from "../contract/surfaces.ts";
import { parseShape } from "./shape.ts";

/** The surfaces that one service answers, the probes included. */
export type SurfacesOf<S extends ServiceName> = {
  [Id in SurfaceId]: (typeof SURFACES)[Id]["service"] extends S | "each" ? Id : never;
}[SurfaceId];

/** What a handler finds in `ctx.state`. */
export interface SurfaceState<Id extends SurfaceId = SurfaceId> {
  surfaceId: Id;
  surface: Surface;
  /** The query, checked; undefined where the surface declares none. */
  query: (typeof SURFACES)[Id]["query"] extends z.ZodType<infer Query> ? Query : undefined;
}

/** Context of a handler; `params` are the path's, decoded but not checked. */
export type SurfaceContext<Id extends SurfaceId = SurfaceId> = Koa.ParameterizedContext<
  SurfaceState<Id>,
  { params: Record<string, string> }
>;

/** Answers one surface: returns the body, or throws RelayError. The status is the surface's unless it sets another. */
export type Handler<Id extends SurfaceId> = (ctx: SurfaceContext<Id>) => BodyOf<Id> | Promise<BodyOf<Id>>;

/** One handler for each surface of a service, none missing and none besides. */
export type Handlers<S extends ServiceName> = { readonly [Id in SurfacesOf<S>]: Handler<Id> };

/** Called after each answer that a handler gave, before it is sent; what it throws fails the request. */
export type OnAnswer = (surfaceId: SurfaceId, surface: Surface, ctx: SurfaceContext) => void;

type BodyOf<Id extends SurfaceId> = DeepReadonly<z.output<(typeof SURFACES)[Id]["response"]>>;
type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/**
 * Mounts the surfaces of a service, aliases included; whatever else is asked for is answered 404, 405 or, for OPTIONS,
 * 204 with Allow. Methods are looked up in the whole catalogue, so that each service tells the truth about all of them.
 * @throws Error when handlers and catalogue do not match.
 */
export function mountSurfaces<S extends ServiceName>(
  service: S,
  handlers: Handlers<S>,
  onAnswer: OnAnswer = () => {},
): Koa.Middleware {
  const ids = surfacesOf(service);
  checkHandlers(service, ids, Object.keys(handlers));
  const router = new Router({ strict: true, sensitive: true });
  /** Most surfaces need no pattern: these are found without trying one route after the other. */
  const plain = new Map<string, Koa.Middleware>();
  for (const id of ids) {
    const surface: Surface = SURFACES[id];
    const answer = answerSurface(id, surface, handlers[id as keyof Handlers<S>] as Handler<never>, onAnswer);
    for (const path of pathsOf(surface)) {
      router.register(path.replace(/\{(\w+)\}/g, ":$1"), [surface.method], answer as unknown as RouterMiddleware);
      if (!path.includes("{")) plain.set(`${surface.method} ${path}`, answer);
    }
  }
  const routes = router.routes() as unknown as Koa.Middleware;
  return (ctx, next) => {
    const answer = plain.get(`${ctx.method} ${ctx.path}`);
    return answer === undefined ? routes(ctx, async () => refuseUnrouted(ctx)) : answer(ctx, next);
  };
}

/** Ids of the surfaces that a service answers. */
export function surfacesOf(service: ServiceName): SurfaceId[] {
  const isOurs = (surface: Surface) => surface.service === service || surface.service === "each";
  return (Object.keys(SURFACES) as SurfaceId[]).filter((id) => isOurs(SURFACES[id]));
}

function checkHandlers(service: ServiceName, expected: readonly string[], given: readonly string[]): void {
  const missing = expected.filter((id) => !given.includes(id));
  const surplus = given.filter((id) => !expected.includes(id));
  if (missing.length + surplus.length === 0) return;
  throw new Error(
    `Handlers of ${service}: missing [${missing.join(", ")}], not in its catalogue [${surplus.join(", ")}]`,
  );
}

function answerSurface(id: SurfaceId, surface: Surface, handler: Handler<never>, onAnswer: OnAnswer): Koa.Middleware {
  return async (context) => {
    const ctx = context as unknown as SurfaceContext;
    const query = surface.query === null ? undefined : parseShape(surface.query, { ...ctx.query });
    Object.assign(ctx.state, { surfaceId: id, surface, query });
    ctx.status = surface.status;
    const body = await handler(ctx as SurfaceContext<never>);
    // First the type: Koa would guess one from the body.
    ctx.type = surface.media;
    ctx.body = body;
    onAnswer(id, surface, ctx);
  };
}

function refuseUnrouted(ctx: Koa.Context): void {
  const methods = methodsAt(ctx.path);
  if (methods.length === 0 || methods.includes(ctx.method)) throw new RelayError("not_found");
  ctx.set("Allow", [...methods, "OPTIONS"].join(", "));
  if (ctx.method !== "OPTIONS") throw new RelayError("method_not_allowed");
  ctx.status = 204;
}

const METHODS_BY_PATTERN = Object.values(SURFACES).flatMap((surface: Surface) =>
  pathsOf(surface).map((path) => ({ pattern: patternOf(path), method: surface.method })),
);

function methodsAt(path: string): string[] {
  const methods = METHODS_BY_PATTERN.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
  return [...new Set(methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])))];
}

function pathsOf(surface: Surface): readonly string[] {
  return [surface.path, ...surface.aliases];
}

function patternOf(path: string): RegExp {
  const literals = path.split(/\{\w+\}/).map((literal) => literal.replaceAll(".", "\\."));
  return new RegExp(`^${literals.join("[^/]+")}$`);
}
