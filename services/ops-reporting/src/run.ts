import { serveOverHttp } from "runtime/http/http-service.ts";
import { runService } from "runtime/lifecycle.ts";
import { createLogger } from "runtime/logging.ts";
import { withinOpenFiles } from "runtime/open-files.ts";
import { createOpsReporting } from "./service.ts";
import { readOpsReportingSettings } from "./settings.ts";

await runService(process, (env) => {
  const asked = readOpsReportingSettings(env);
  const logger = createLogger({ service: "ops-reporting", level: asked.logLevel });
  const settings = withinOpenFiles(asked, logger);
  return { service: serveOverHttp(createOpsReporting(settings, { logger }), settings, logger), logger };
});
