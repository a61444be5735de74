import { serveOverHttp } from "runtime/http/http-service.ts";
import { runService } from "runtime/lifecycle.ts";
import { createLogger } from "runtime/logging.ts";
import { createWsConnector } from "./service.ts";
import { readWsConnectorSettings } from "./settings.ts";

await runService(process, (env) => {
  const settings = readWsConnectorSettings(env);
  const { host, port, metricsPort } = settings;
  const logger = createLogger({ service: "ws-connector", level: settings.logLevel });
  return {
    service: serveOverHttp(createWsConnector(settings, { logger }), { host, port, metricsPort, logger }),
    logger,
  };
});
