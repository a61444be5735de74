import { settingsReader } from "@agent-relay/shared/settings.ts";

/** Settings of ops-reporting from the environment. @throws SettingsError that lists every fault. */
export const readOpsReportingSettings = settingsReader(
  "PORT",
  "HOST",
  "REDIS_URL",
  "RELAY_TRUSTED_PROXY_HOPS",
  "RELAY_PROOF_FRESHNESS_MS",
  "RELAY_OFFLINE_AFTER_MS",
  "RELAY_PARTITIONS",
  "LOG_LEVEL",
);

/** What ops-reporting itself needs; port, host and log level are its server's. */
export type OpsReportingSettings = Omit<ReturnType<typeof readOpsReportingSettings>, "port" | "host" | "logLevel">;
