import type { IncomingMessage, RequestListener } from "node:http";
import type { Duplex } from "node:stream";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import { HttpServer } from "./server.ts";

/** A service that answers HTTP through a server that is not its own. */
export interface HttpService extends Service {
  /** May be called at any time; answers 503 for whatever needs Redis before `start` and after `stop`. */
  readonly handler: RequestListener;
  /** Takes websockets, which are its own to close. */
  readonly upgrade?: (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/**
 * A service behind a port of its own: it serves once it has started, and stops once its websockets are closed and every
 * answer is given, so that what the last requests counted is written.
 */
export function overHttp(
  service: HttpService,
  options: { readonly host: string; readonly port: number; readonly logger: Logger },
): Service {
  const { handler, upgrade } = service;
  const server = new HttpServer({ ...options, handler, ...(upgrade === undefined ? {} : { upgrade }) });
  let stopping = false;
  return {
    async start() {
      await service.start();
      if (!stopping) await server.start();
    },
    async stop() {
      stopping = true;
      if (upgrade !== undefined) await service.stop();
      await server.stop();
      await service.stop();
    },
  };
}
