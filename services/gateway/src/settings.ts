import { settingsReader } from "relay-runtime/settings.ts";

/** Settings of the gateway from the environment. @throws SettingsError that lists every invalid setting. */
export const readGatewaySettings = settingsReader(
  "PORT",
  "RELAY_TLS_CERT_FILE",
  "RELAY_TLS_KEY_FILE",
  "HOST",
  "REDIS_URL",
  "RELAY_BASE_URL",
  "RELAY_WS_URL",
  "RELAY_PUBLIC_HOSTS",
  "RELAY_ALTERNATE_WS_PATH",
  "RELAY_KEYS_FILE",
  "RELAY_AUDIT_FILE",
  "RELAY_GATEWAY_KEY_FILE",
  "RELAY_TRUSTED_PROXY_HOPS",
  "RELAY_HTTP_CONNECTIONS",
  "RELAY_CONNECTIONS_PER_ADDRESS",
  "RELAY_PROOF_FRESHNESS_MS",
  "RELAY_OFFLINE_AFTER_MS",
  "RELAY_PARTITIONS",
  "RELAY_GATHER_MS",
  "RELAY_PUBLIC_REQUESTS_PER_MINUTE",
  "RELAY_ENVELOPES_PER_SECOND",
  "RELAY_BYTES_PER_SECOND",
  "RELAY_PACKAGES_DIR",
  "RELAY_CONTACT",
  "RELAY_DEPLOY_ID",
  "METRICS_PORT",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_SDK_DISABLED",
  "OTEL_TRACES_SAMPLER_ARG",
  "LOG_LEVEL",
);

/** What the gateway itself needs; ports, host and log level are its server's. */
export type GatewaySettings = Omit<
  ReturnType<typeof readGatewaySettings>,
  "port" | "host" | "tlsCertFile" | "tlsKeyFile" | "metricsPort" | "logLevel"
>;
