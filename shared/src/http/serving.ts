import type { IncomingMessage, RequestListener } from "node:http";
import type { Duplex } from "node:stream";
import type { Registry } from "prom-client";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import { MetricsServer } from "../metrics/server.ts";
import { HttpServer } from "./server.ts";

/** A service that answers HTTP through a server that is not its own. */
export interface HttpService extends Service {
  /** May be called at any time; answers 503 for whatever needs Redis before `start` and after `stop`. */
  readonly handler: RequestListener;
  readonly metrics: Registry;
  /** Takes websockets, which are its own to close. */
  readonly upgrade?: (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/**
 * A service behind a port of its own: it serves once it has started, and stops once its websockets are closed and every
 * answer is given, so that what the last requests counted is written. Its metrics are served to the very end.
 * @param options.metricsPort undefined = no metrics.
 */
export function overHttp(
  service: HttpService,
  options: {
    readonly host: string;
    readonly port: number;
    readonly metricsPort: number | undefined;
    readonly logger: Logger;
  },
): Service {
  const { handler, upgrade } = service;
  const metrics = metricsServer([service.metrics], options);
  const server = new HttpServer({ ...options, handler, ...(upgrade === undefined ? {} : { upgrade }) });
  let stopping = false;
  return {
    async start() {
      await service.start();
      if (!stopping) await server.start();
      if (!stopping) await metrics?.start();
    },
    async stop() {
      stopping = true;
      if (upgrade !== undefined) await service.stop();
      await server.stop();
      await service.stop();
      await metrics?.stop();
    },
  };
}

/** The server of the metrics, when there is a port for it. */
export function metricsServer(
  services: readonly Registry[],
  options: { readonly host: string; readonly metricsPort: number | undefined; readonly logger: Logger },
): MetricsServer | undefined {
  const { host, metricsPort: port, logger } = options;
  return port === undefined ? undefined : new MetricsServer({ services, host, port, logger });
}
