import { overHttp } from "@agent-relay/shared/http/serving.ts";
import { runService } from "@agent-relay/shared/lifecycle.ts";
import { createLogger } from "@agent-relay/shared/logging.ts";
import { createOpsReporting } from "./service.ts";
import { readOpsReportingSettings } from "./settings.ts";

await runService(process, (env) => {
  const settings = readOpsReportingSettings(env);
  const { host, port, metricsPort } = settings;
  const logger = createLogger({ service: "ops-reporting", level: settings.logLevel });
  return { service: overHttp(createOpsReporting(settings, { logger }), { host, port, metricsPort, logger }), logger };
});
