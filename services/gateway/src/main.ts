import { overHttp } from "@agent-relay/shared/http/serving.ts";
import { runService } from "@agent-relay/shared/lifecycle.ts";
import { createLogger } from "@agent-relay/shared/logging.ts";
import { createGateway } from "./service.ts";
import { readGatewaySettings } from "./settings.ts";

await runService(process, (env) => {
  const settings = readGatewaySettings(env);
  const { host, port, metricsPort } = settings;
  const logger = createLogger({ service: "gateway", level: settings.logLevel });
  return { service: overHttp(createGateway(settings, { logger }), { host, port, metricsPort, logger }), logger };
});
