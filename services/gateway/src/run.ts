import { serveOverHttp } from "runtime/http/http-service.ts";
import { runService } from "runtime/lifecycle.ts";
import { createLogger } from "runtime/logging.ts";
import { withinOpenFiles } from "runtime/open-files.ts";
import { createGateway } from "./service.ts";
import { readGatewaySettings } from "./settings.ts";

await runService(process, (env) => {
  const asked = readGatewaySettings(env);
  const logger = createLogger({ service: "gateway", level: asked.logLevel });
  const settings = withinOpenFiles(asked, logger);
  return { service: serveOverHttp(createGateway(settings, { logger }), settings, logger), logger };
});
