import type { Contact } from "relay-protocol/contract/responses.ts";
import type { Logger } from "relay-runtime/logging.ts";
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

/** Settings of the gateway itself. Port, host and log level are settings of its server. */
export type GatewaySettings = Omit<
  ReturnType<typeof readGatewaySettings>,
  "port" | "host" | "tlsCertFile" | "tlsKeyFile" | "metricsPort" | "logLevel"
>;

/** How a caller reaches a person. @param address RELAY_CONTACT. */
export function contactOf(address: string | undefined): Contact {
  if (address === undefined) return { address: null, note: "The operator of this relay named no contact." };
  return { address, note: `The operator of this relay can be reached at ${address}.` };
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Without RELAY_CONTACT security.txt names nothing but feedback, which nobody reads: a relay for others needs one. */
export function warnWithoutContact(
  { baseUrl, contact }: Pick<GatewaySettings, "baseUrl" | "contact">,
  logger: Logger,
): void {
  if (contact !== undefined || LOOPBACK.test(new URL(baseUrl).hostname)) return;
  logger.warn({ setting: "RELAY_CONTACT" }, "no contact is set: nobody can report a security problem to a person");
}
