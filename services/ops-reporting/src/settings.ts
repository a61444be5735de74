import { settingsReader } from "relay-runtime/settings.ts";

/** Settings of ops-reporting from the environment. @throws SettingsError that lists every invalid one. */
export const readOpsReportingSettings = settingsReader(
  "PORT",
  "RELAY_TLS_CERT_FILE",
  "RELAY_TLS_KEY_FILE",
  "HOST",
  "REDIS_URL",
  "RELAY_BASE_URL",
  "RELAY_WS_URL",
  "RELAY_PUBLIC_HOSTS",
  "RELAY_TRUSTED_PROXY_HOPS",
  "RELAY_HTTP_CONNECTIONS",
  "RELAY_CONNECTIONS_PER_ADDRESS",
  "RELAY_PUBLIC_REQUESTS_PER_MINUTE",
  "RELAY_PROOF_FRESHNESS_MS",
  "RELAY_PROOF_IDENTITIES",
  "RELAY_OFFLINE_AFTER_MS",
  "RELAY_PARTITIONS",
  "METRICS_PORT",
  "LOG_LEVEL",
);

/** What ops-reporting itself needs; ports, host and log level are its server's. */
export type OpsReportingSettings = Omit<
  ReturnType<typeof readOpsReportingSettings>,
  "port" | "host" | "tlsCertFile" | "tlsKeyFile" | "metricsPort" | "logLevel"
>;

/** What reports need besides the window: where links lead, how long a session proof stays fresh, and what it shows. */
export type ReportSettings = Pick<OpsReportingSettings, "baseUrl" | "proofFreshnessMs" | "proofIdentities">;
