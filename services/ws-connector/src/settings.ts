import { settingsReader } from "runtime/settings.ts";

/** Settings of the ws-connector. */
export const readWsConnectorSettings = settingsReader(
  "PORT",
  "HOST",
  "REDIS_URL",
  "RELAY_BASE_URL",
  "RELAY_ALTERNATE_WS_PATH",
  "RELAY_KEYS_FILE",
  "RELAY_PROOF_FRESHNESS_MS",
  "RELAY_OFFLINE_AFTER_MS",
  "RELAY_MAX_CONNECTIONS",
  "RELAY_HTTP_CONNECTIONS",
  "RELAY_CONNECTIONS_PER_ADDRESS",
  "RELAY_UNREGISTERED_CONNECTIONS",
  "RELAY_ENVELOPES_PER_SECOND",
  "RELAY_AGENTS_PER_KEY",
  "RELAY_BYTES_PER_SECOND",
  "RELAY_ALLOWED_ORIGINS",
  "RELAY_PARTITIONS",
  "RELAY_OUTBOX_BYTES",
  "RELAY_OUTBOX_TOTAL",
  "RELAY_DRAIN_MS",
  "RELAY_PACKAGES_DIR",
  "RELAY_DEPLOY_ID",
  "RELAY_TRUSTED_PROXY_HOPS",
  "METRICS_PORT",
  "LOG_LEVEL",
);

export type WsConnectorSettings = ReturnType<typeof readWsConnectorSettings>;
