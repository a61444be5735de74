import { createApp } from "@agent-relay/shared/http/app.ts";
import { healthHandler } from "@agent-relay/shared/http/health.ts";
import { type ReadinessSources, readyHandler } from "@agent-relay/shared/http/readiness.ts";
import { mountSurfaces } from "@agent-relay/shared/http/router.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import type Koa from "koa";

/** The probes of a pod. Ready means: a message through the pod's own channel came back. */
export function createProbes(
  options: ReadinessSources & { readonly logger: Logger; readonly trustedProxyHops: number },
): Koa {
  const handlers = { health: healthHandler("ws-connector"), ready: readyHandler("ws-connector", options) };
  return createApp(options).use(mountSurfaces("ws-connector", handlers));
}
