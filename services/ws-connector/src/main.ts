import { HttpServer } from "@agent-relay/shared/http/server.ts";
import { runService } from "@agent-relay/shared/lifecycle.ts";
import { createLogger } from "@agent-relay/shared/logging.ts";
import { createWsConnector } from "./service.ts";
import { readWsConnectorSettings } from "./settings.ts";

await runService(process, (env) => {
  const settings = readWsConnectorSettings(env);
  const logger = createLogger({ service: "ws-connector", level: settings.logLevel });
  const connector = createWsConnector(settings, { logger });
  const server = new HttpServer({
    handler: connector.handler,
    upgrade: connector.upgrade,
    host: settings.host,
    port: settings.port,
    logger,
  });
  const service = {
    start: async () => {
      await connector.start();
      await server.start();
    },
    stop: async () => {
      await connector.stop();
      await server.stop();
    },
  };
  return { service, logger };
});
