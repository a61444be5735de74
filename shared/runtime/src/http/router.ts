import { METHODS } from "node:http";
import Router, { type RouterMiddleware } from "@koa/router";
import type Koa from "koa";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { ServiceName, Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId, serviceOf } from "relay-protocol/contract/surfaces.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import type { z } from "zod";
import { validate } from "./input.ts";

/** The surfaces that one service answers, the probes included. */
type SurfacesOf<S extends ServiceName> = {
  [Id in SurfaceId]: (typeof SURFACES)[Id]["service"] extends S | "each" ? Id : never;
}[SurfaceId];

/** The members of `ctx.state` that a handler reads. */
interface SurfaceState<Id extends SurfaceId = SurfaceId> {
  surfaceId: Id;
  surface: Surface;
  /** Set once a valid API key was found: its name in the keys file, never the key. */
  apiKeyId?: string;
  /** The checked query; undefined if the surface declares none. */
  query: (typeof SURFACES)[Id]["query"] extends z.ZodType<infer Query> ? Query : undefined;
}

/** Context of a handler; `params` are the path's, decoded but not checked. */
export type SurfaceContext<Id extends SurfaceId = SurfaceId> = Koa.ParameterizedContext<
  SurfaceState<Id>,
  { params: Record<string, string> }
>;

/** The JSON text of a body that is too large to be written again for each request. */
export type JsonText<Body> = string & { readonly textOf: Body };

/**
 * Answers one surface: returns the body, or its text or bytes as they are to be sent, or throws ServiceError. The status is the
 * surface's unless it sets another.
 */
export type Handler<Id extends SurfaceId> = (ctx: SurfaceContext<Id>) => Answer<Id> | Promise<Answer<Id>>;

/** One handler for each surface of a service, and no other. */
export type Handlers<S extends ServiceName> = { readonly [Id in SurfacesOf<S>]: Handler<Id> };

/** Called with each answer of a handler before it is sent; if it throws, the request fails. */
export type OnAnswer = (surfaceId: SurfaceId, surface: Surface, ctx: SurfaceContext) => void;

type Answer<Id extends SurfaceId> = BodyOf<Id> | JsonText<BodyOf<Id>> | Buffer;
type BodyOf<Id extends SurfaceId> = DeepReadonly<z.output<(typeof SURFACES)[Id]["response"]>>;
type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/**
 * Mounts the surfaces of a service, aliases included. Routes of other services are known but not answered: the edge may
 * send a method that a path does not have here, and the answer is 405 with Allow. Any other path is 404.
 * @throws Error when handlers and catalogue do not match, or when a path of the service is routed to another one.
 */
export function mountSurfaces<S extends ServiceName>(
  service: S,
  handlers: Handlers<S>,
  onAnswer: OnAnswer = () => {},
): Koa.Middleware {
  const ours = surfacesOf(service);
  checkHandlers(service, ours, Object.keys(handlers));
  checkRouting(ours);
  const router = new Router(ROUTER_OPTIONS);
  for (const id of Object.keys(SURFACES) as SurfaceId[]) {
    const surface: Surface = SURFACES[id];
    const handler = handlers[id as keyof Handlers<S>] as Handler<never> | undefined;
    const answer: Koa.Middleware =
      handler === undefined ? (_, next) => next() : answerSurface(id, surface, handler, onAnswer);
    const paths = pathsOf(surface).map((path) => path.replace(/\{(\w+)\}/g, ":$1"));
    router.register(paths, [surface.method], answer as unknown as RouterMiddleware);
  }
  return routesOf(router);
}

/** Paths are taken as they are written. Any other method of a path is not allowed there, rather than not implemented. */
export const ROUTER_OPTIONS = { strict: true, sensitive: true, methods: METHODS };

/** The routes of a router; it answers other methods of their paths as well: OPTIONS, and 405. */
export function routesOf(router: Router): Koa.Middleware {
  const answer = router.routes() as unknown as Koa.Middleware;
  const otherMethods = router.allowedMethods() as unknown as Koa.Middleware;
  return (ctx, next) => otherMethods(ctx, () => answer(ctx, next));
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
    `Handlers of ${service}: missing [${missing.join(", ")}], not in the catalogue [${surplus.join(", ")}]`,
  );
}

/** The edge routes by path: a surface under a path of another service would never be asked for here. */
function checkRouting(ids: readonly SurfaceId[]): void {
  for (const id of ids) {
    const surface: Surface = SURFACES[id];
    const misrouted = pathsOf(surface).find((path) => serviceOf(surface.method, path) !== surface.service);
    if (surface.service === "each" || misrouted === undefined) continue;
    throw new Error(`${id}: ${misrouted} is a path of ${serviceOf(surface.method, misrouted)}`);
  }
}

function answerSurface(id: SurfaceId, surface: Surface, handler: Handler<never>, onAnswer: OnAnswer): Koa.Middleware {
  return async (context) => {
    const ctx = context as unknown as SurfaceContext;
    const query = surface.query === null ? undefined : validate(surface.query, { ...ctx.query });
    Object.assign(ctx.state, { surfaceId: id, surface, query });
    ctx.status = surface.status;
    const body = await handler(ctx as SurfaceContext<never>);
    // The type is set first: Koa would guess one from the body. A surface of many files leaves it to its handler.
    ctx.type ||= surface.media;
    ctx.body = body;
    onAnswer(id, surface, ctx);
  };
}

function pathsOf(surface: Surface): readonly string[] {
  return [surface.path, ...surface.aliases];
}

/**
 * @param hint replaces the error's own hint for an unknown path.
 * @throws ServiceError if no route answered the request.
 */
export function refuseUnanswered(ctx: Koa.Context, hint = ERRORS.not_found.hint): void {
  if (ctx.body !== undefined) return;
  if (ctx.status === 404) throw new ServiceError("not_found", { hint });
  const detail = `This path supports ${ctx.response.get("Allow")}.`;
  if (ctx.status === 405) throw new ServiceError("method_not_allowed", { detail });
}
