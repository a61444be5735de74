import { serveOverHttp } from "runtime/http/http-service.ts";
import { runService } from "runtime/lifecycle.ts";
import { createLogger } from "runtime/logging.ts";
import { withinOpenFiles } from "runtime/open-files.ts";
import { createWsConnector } from "./service.ts";
import { readWsConnectorSettings } from "./settings.ts";

await runService(process, (env) => {
  const asked = readWsConnectorSettings(env);
  const logger = createLogger({ service: "ws-connector", level: asked.logLevel });
  const settings = withinOpenFiles(asked, logger);
  return { service: serveOverHttp(createWsConnector(settings, { logger }), settings, logger), logger };
});
