import { serveOverHttp } from "runtime/http/http-service.ts";
import { runService } from "runtime/lifecycle.ts";
import { createLogger } from "runtime/logging.ts";
import { createOpsReporting } from "./service.ts";
import { readOpsReportingSettings } from "./settings.ts";

await runService(process, (env) => {
  const settings = readOpsReportingSettings(env);
  const { host, port, metricsPort } = settings;
  const logger = createLogger({ service: "ops-reporting", level: settings.logLevel });
  return {
    service: serveOverHttp(createOpsReporting(settings, { logger }), { host, port, metricsPort, logger }),
    logger,
  };
});
