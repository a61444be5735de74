import { runHttpService } from "relay-runtime/http/http-service.ts";
import { createOpsReporting } from "./service.ts";
import { readOpsReportingSettings } from "./settings.ts";

await runHttpService(process, { name: "ops-reporting", read: readOpsReportingSettings, create: createOpsReporting });
