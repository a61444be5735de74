import { serveOverHttp } from "runtime/http/http-service.ts";
import { runService } from "runtime/lifecycle.ts";
import { createLogger } from "runtime/logging.ts";
import { createGateway } from "./service.ts";
import { readGatewaySettings } from "./settings.ts";

await runService(process, (env) => {
  const settings = readGatewaySettings(env);
  const { host, port, metricsPort } = settings;
  const logger = createLogger({ service: "gateway", level: settings.logLevel });
  return { service: serveOverHttp(createGateway(settings, { logger }), { host, port, metricsPort, logger }), logger };
});
