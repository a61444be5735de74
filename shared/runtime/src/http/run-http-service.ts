import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type ProcessLike, runService } from "../lifecycle.ts";
import { createLogger, type Logger, type LogLevel } from "../logging.ts";
import { withinOpenFiles } from "../open-files.ts";
import type { Environment } from "../settings.ts";
import { SETTINGS } from "../settings-catalogue.ts";
import { type HttpService, type ServerSettings, serveOverHttp } from "./http-service.ts";

type OfService = ServerSettings & { readonly logLevel: LogLevel };

/** A service that is yet to be made. Both functions throw SettingsError. */
export interface HttpServiceRecipe<Settings extends OfService> {
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
 * For PORT=0: a port that nobody listens on, known before the service is made, which names its own address in what it
 * publishes. Should another process take it in between, the start fails as with any port that is in use.
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
