import type { IncomingMessage, ServerResponse } from "node:http";
import { collectDefaultMetrics, Registry } from "prom-client";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import { problemOf } from "../http/problem.ts";
import { HttpServer } from "../http/server.ts";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";

/**
 * GET /metrics on a port of its own, which no edge exposes: the metrics of the process and of its services in the
 * Prometheus text format. No CORS header: no page reads it.
 */
export class MetricsServer implements Service {
  readonly #process = new Registry();
  readonly #services: readonly Registry[];
  readonly #server: HttpServer;

  constructor(options: {
    readonly services: readonly Registry[];
    readonly host: string;
    readonly port: number;
    readonly logger: Logger;
  }) {
    const { services, host, port, logger } = options;
    this.#services = services;
    const handler = (req: IncomingMessage, res: ServerResponse) => {
      this.#answer(req, res).catch((err: unknown) => {
        logger.error({ err }, "metrics could not be collected");
        refuse(res, "internal_error", {});
      });
    };
    this.#server = new HttpServer({ handler, host, port, logger });
  }

  async start(): Promise<void> {
    collectDefaultMetrics({ register: this.#process });
    await this.#server.start();
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.url?.split("?", 1)[0] !== "/metrics") refuse(res, "not_found", {});
    else if (req.method !== "GET") refuse(res, "method_not_allowed", { Allow: "GET" });
    else {
      const text = await exposition([this.#process, ...this.#services]);
      res.writeHead(200, { "Content-Type": Registry.PROMETHEUS_CONTENT_TYPE, "Cache-Control": "no-store" }).end(text);
    }
  }
}

/** One text of several registries; a metric that several registries have appears once, with the series of all. */
export async function exposition(registries: readonly Registry[]): Promise<string> {
  const parts = await Promise.all(registries.map((registry) => registry.getMetricsAsJSON()));
  const joined = new Registry();
  for (const same of Map.groupBy(parts.flat(), ({ name }) => name).values()) {
    const [first] = same as [(typeof same)[number]];
    const whole = { ...first, values: same.flatMap(({ values }) => values as object[]) };
    joined.registerMetric({ ...whole, get: async () => whole } as never);
  }
  return await joined.metrics();
}

function refuse(res: ServerResponse, code: ErrorCode, fields: Record<string, string>): void {
  const { status, headers, body } = problemOf(new ServiceError(code));
  res.writeHead(status, { ...headers, ...fields }).end(JSON.stringify(body));
}
