import { WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { createApp } from "relay-runtime/http/app.ts";
import { healthHandler } from "relay-runtime/http/health.ts";
import { requireUpgrade } from "relay-runtime/http/require-upgrade.ts";
import { mountSurfaces } from "relay-runtime/http/router.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { type ReadinessSources, readyHandler } from "relay-window/window/readiness.ts";

export interface ProbeOptions extends ReadinessSources {
  readonly logger: Logger;
  readonly trustedProxyHops: number;
  readonly alternateWsPath: string;
}

/**
 * What a pod answers without an upgrade: /health, /ready, and that the websocket paths need one. Ready means: a message
 * that the pod sent to its own channel came back.
 */
export function createProbes(options: ProbeOptions) {
  const handlers = { health: healthHandler("ws-connector"), ready: readyHandler("ws-connector", options) };
  return createApp(options)
    .use(requireUpgrade([WEBSOCKET_PATH, options.alternateWsPath]))
    .use(mountSurfaces("ws-connector", handlers));
}

export type Probes = ReturnType<typeof createProbes>;
