import { once } from "node:events";
import type { RequestListener } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import type { Registry } from "prom-client";
import { type ProcessLike, runService, type Service } from "../lifecycle.ts";
import { createLogger, type Logger, type LogLevel } from "../logging.ts";
import type { LimitName } from "../metrics/catalogue.ts";
import { MetricsServer } from "../metrics/metrics-server.ts";
import type { ServiceMetrics } from "../metrics/service-metrics.ts";
import type { Environment } from "../settings.ts";
import { SETTINGS } from "../settings-catalogue.ts";
import { certificateOf, observeCertificate } from "./certificate.ts";
import { type ConnectionSettings, connectionBounds, withinOpenFiles } from "./connections.ts";
import { HttpServer, type TakeUpgrade } from "./server.ts";

/** A service that answers HTTP requests; the server that hands them over is not its own. */
export interface HttpService extends Service {
  /** May be called at any time; answers 503 for whatever needs Redis before `start` and after `stop`. */
  readonly handler: RequestListener;
  readonly metrics: ServiceMetrics;
  /** Counts a limit that its server reached. */
  readonly limitReached: (limit: LimitName) => void;
  /** Takes over websocket upgrades; the service closes these sockets itself. */
  readonly upgrade?: TakeUpgrade;
}

/** Settings of the server of a service. */
interface ServerSettings extends ConnectionSettings {
  readonly host: string;
  readonly port: number;
  readonly metricsPort: number | undefined;
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
}

/**
 * Runs a service behind a port of its own. Start: the service, then its server, then the metrics. Stop: websockets, then the
 * server, then the service, so that the counts of the last requests are written; the metrics last.
 * @param settings.metricsPort undefined = no metrics.
 */
export function serveOverHttp(service: HttpService, settings: ServerSettings, logger: Logger): Service {
  const { handler, upgrade, limitReached } = service;
  const { host, port, trustedProxyHops } = settings;
  const metrics = metricsServer([service.metrics.registry], { ...settings, logger });
  const bounds = connectionBounds(settings);
  const certificate = certificateOf(settings, logger);
  observeCertificate(service.metrics, certificate);
  const server = new HttpServer({
    handler,
    ...(upgrade && { upgrade }),
    ...{ host, port, certificate, bounds, trustedProxyHops, limitReached, logger },
  });
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

/** The server of the metrics; undefined without a port. */
export function metricsServer(
  services: readonly Registry[],
  options: { readonly host: string; readonly metricsPort: number | undefined; readonly logger: Logger },
): MetricsServer | undefined {
  const { host, metricsPort: port, logger } = options;
  return port === undefined ? undefined : new MetricsServer({ services, host, port, logger });
}

type OfService = ServerSettings & { readonly logLevel: LogLevel };

/** A service that is yet to be made. Both functions throw SettingsError. */
interface HttpServiceRecipe<Settings extends OfService> {
  readonly name: string;
  readonly read: (env: Environment) => Settings;
  readonly create: (settings: Settings, options: { readonly logger: Logger }) => HttpService;
}

/** Runs one service in a process and on a port of its own, until SIGTERM or SIGINT. */
export async function runHttpService<Settings extends OfService>(
  host: ProcessLike,
  { name, read, create }: HttpServiceRecipe<Settings>,
): Promise<void> {
  const port = host.env.PORT === "0" ? await freePort(host.env.HOST || SETTINGS.HOST.default) : host.env.PORT;
  await runService(host, (env) => {
    const asked = read({ ...env, PORT: port });
    const logger = createLogger({ service: name, level: asked.logLevel });
    const settings = withinOpenFiles(asked, logger);
    return { service: serveOverHttp(create(settings, { logger }), settings, logger), logger };
  });
}

/**
 * For PORT=0: a free port, known before the service is made, because the service publishes its own address. If another
 * process takes the port in between, the start fails like with any port in use.
 */
async function freePort(host: string): Promise<string> {
  const server = createServer();
  try {
    await once(server.listen(0, host), "listening");
  } catch {
    // An address that this machine does not have: the server of the service says so.
    return "0";
  }
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return String(port);
}
