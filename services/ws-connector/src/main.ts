import { overHttp } from "@agent-relay/shared/http/serving.ts";
import { runService } from "@agent-relay/shared/lifecycle.ts";
import { createLogger } from "@agent-relay/shared/logging.ts";
import { createWsConnector } from "./service.ts";
import { readWsConnectorSettings } from "./settings.ts";

await runService(process, (env) => {
  const settings = readWsConnectorSettings(env);
  const { host, port, metricsPort } = settings;
  const logger = createLogger({ service: "ws-connector", level: settings.logLevel });
  return { service: overHttp(createWsConnector(settings, { logger }), { host, port, metricsPort, logger }), logger };
});
