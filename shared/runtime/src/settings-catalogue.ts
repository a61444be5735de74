import { PROOF_IDENTITIES } from "relay-protocol/contract/reports/common.ts";
import {
  ENVELOPE_LIMITS,
  HTTP_LIMITS,
  PRESENCE_LIMITS,
  SESSION_LIMITS,
  WINDOW_LIMITS,
} from "relay-protocol/wire/limits.ts";
import { z } from "zod";
import { isCollector, isContact, isFreePath, isHost, isOriginOrAny, isPlainUrl, isRedisUrl } from "./addresses.ts";
import { LOG_LEVELS } from "./logging.ts";

/** One environment variable. */
export interface Setting<Value = unknown> {
  /** From the variable's text to its value; the message of an issue states the rule, never the text. */
  readonly schema: z.ZodType<Value, string>;
  /** As documents show it; null when there is none. */
  readonly default: string | null;
  /** True when a service that reads it cannot start without it. */
  readonly required?: boolean;
  /** Makes the default from other settings; undefined when one of them is invalid. */
  readonly derive?: (read: ReadSource) => string | undefined;
  /** Other settings that must not have the same value. */
  readonly differsFrom?: readonly ("PORT" | "METRICS_PORT")[];
  /** Another setting without which it means nothing. */
  readonly needs?: "RELAY_TLS_CERT_FILE" | "RELAY_TLS_KEY_FILE" | "RELAY_ADMIN_KEY_FILE";
  /** The least number when REDIS_URL names a Redis Cluster, for a service that reads both. */
  readonly leastOnCluster?: number;
  readonly description: string;
}

/** Reads a setting that another one's default is made from; undefined when it is invalid. */
export type ReadSource = <Name extends keyof Sources>(name: Name) => Sources[Name] | undefined;
type Sources = { HOST: string; PORT: number; RELAY_BASE_URL: string; RELAY_TLS_CERT_FILE: string };

// Schemas from the text of a setting to its value. The message of an issue states the rule, never the text.
const MAX_TIMER_MS = 2 ** 31 - 1;

const integer = (min: number, max: number) => {
  const rule = `must be an integer from ${min} to ${max}`;
  return z
    .string()
    .regex(/^(?:0|[1-9][0-9]{0,15})$/, { error: rule, abort: true })
    .transform(Number)
    .refine((value) => value >= min && value <= max, rule);
};
const text = (rule: string, isGood: (text: string) => boolean) => z.string().refine(isGood, rule);
const list = (rule: string, isGood: (item: string) => boolean) =>
  z
    .string()
    .transform((value) => value.split(",").map((item) => item.trim()))
    .refine((items) => items.every(isGood), rule);
const share = (rule: string) =>
  z
    .string()
    .regex(/^(?:0|1|0?\.[0-9]{1,9}|1\.0{1,9})$/, rule)
    .transform(Number);
const host = text(
  "must be a host name, an IPv4 address, or an IPv6 address without brackets and zone",
  (name) => /^[A-Za-z0-9.:_-]+$/.test(name) && URL.canParse(`http://${name.includes(":") ? `[${name}]` : name}`),
);
const file = text("must be a file path", (path) => !path.includes("\0"));
const folder = text("must be a folder path", (path) => !path.includes("\0"));

/** Every setting of the relay: its environment variable, rule and default. An empty variable counts as unset. Source: README.md#settings. */
export const SETTINGS = {
  PORT: { schema: integer(0, 65_535), default: "8080", description: "Port that the service listens on." },
  HOST: {
    schema: host,
    default: "127.0.0.1",
    description: "Address that the service listens on; 0.0.0.0 in a container.",
  },
  REDIS_URL: {
    schema: text(
      "must be redis://…, rediss://…, unix:///path.sock, redis-cluster://host:port,… or rediss-cluster://host:port,…",
      isRedisUrl,
    ),
    default: null,
    required: true,
    description:
      "Redis database of the relay, or nodes of its Redis Cluster (`redis-cluster://user:password@host:port,host:port`), used by nothing else; `npm start` runs one itself.",
  },
  RELAY_TLS_CERT_FILE: {
    schema: file,
    default: null,
    needs: "RELAY_TLS_KEY_FILE",
    description:
      "PEM file with the certificate, chain included, that the service serves TLS with; read again when it changes; unset = no TLS.",
  },
  RELAY_TLS_KEY_FILE: {
    schema: file,
    default: null,
    needs: "RELAY_TLS_CERT_FILE",
    description: "PEM file with the private key of that certificate, without passphrase.",
  },
  RELAY_BASE_URL: {
    schema: text("must be an http or https URL without trailing slash", (url) => isPlainUrl(url, ["http:", "https:"])),
    default: "http://HOST:PORT",
    derive: deriveBaseUrl,
    description:
      "Base address of the HTTP surfaces, as clients reach it, with its path prefix if it has one: https://host/relay.",
  },
  RELAY_WS_URL: {
    schema: text("must be a ws or wss URL without trailing slash", (url) => isPlainUrl(url, ["ws:", "wss:"])),
    default: "RELAY_BASE_URL with ws or wss",
    derive: (read) => read("RELAY_BASE_URL")?.replace(/^http/, "ws"),
    description: "Base address of the websocket paths, as clients reach it.",
  },
  RELAY_ALTERNATE_WS_PATH: {
    schema: text("must be a path other than /ws and those of HTTP surfaces", isFreePath),
    default: "/relay",
    description: "Second websocket path, in addition to /ws.",
  },
  RELAY_AUDIT_FILE: {
    schema: file,
    default: null,
    description:
      "File that registers, takeovers, refusals by key, changes of keys, windows and acts of the operator are appended to, as JSON lines; unset = none.",
  },
  RELAY_KEYS_FILE: {
    schema: file,
    default: null,
    required: true,
    description: "JSON file with the API keys and signing keys; read again when it changes.",
  },
  RELAY_GATEWAY_KEY_FILE: {
    schema: file,
    default: null,
    description:
      "File with the gateway's Ed25519 private key (PKCS#8 PEM), read again when it changes; unset = a new key at start.",
  },
  RELAY_PUBLIC_HOSTS: {
    schema: list(
      "must be hosts as URLs spell them, in lower case, IPv6 addresses compressed: relay.example, relay.example:8443, [::1], [::1]:8443; separated by commas",
      isHost,
    ),
    default: null,
    description:
      "Hosts under which clients dial the relay, with or without port, separated by commas: `relay.example:8443,[::1]`.",
  },
  RELAY_TRUSTED_PROXY_HOPS: {
    schema: integer(0, 10),
    default: "0",
    description: "Number of proxies in front of the relay whose X-Forwarded-For entries are trusted.",
  },
  RELAY_PROOF_FRESHNESS_MS: {
    schema: integer(1, MAX_TIMER_MS),
    default: String(SESSION_LIMITS.proofFreshnessMs),
    description: "How long a session proof stays fresh; must be the same for every service.",
  },
  RELAY_PROOF_IDENTITIES: {
    schema: z.enum(PROOF_IDENTITIES, `must be one of ${PROOF_IDENTITIES.join(", ")}`),
    default: "shown",
    description:
      "Whether the public `recent_session_proofs` name agents and sessions (`shown`) or number them (`hidden`).",
  },
  RELAY_OFFLINE_AFTER_MS: {
    schema: integer(PRESENCE_LIMITS.staleAfterMs + 1, MAX_TIMER_MS),
    default: String(PRESENCE_LIMITS.offlineAfterMs),
    description: "Time without a heartbeat after which a stale agent is offline.",
  },
  RELAY_MAX_CONNECTIONS: {
    schema: integer(1, 1_000_000),
    default: "50000",
    description: "Websocket connections of one pod; further ones are refused with 503.",
  },
  RELAY_HTTP_CONNECTIONS: {
    schema: integer(0, 1_000_000),
    default: "2000",
    description:
      "HTTP connections of one process, websockets apart; beyond it the one idle longest is closed; 0 = no limit.",
  },
  RELAY_CONNECTIONS_PER_ADDRESS: {
    schema: integer(0, 1_000_000),
    default: "1000",
    description:
      "Websocket connections of one client address on one pod, at most half of them unregistered; twice as many may be opened per minute; without trusted proxies as many HTTP connections too; 0 = no limit.",
  },
  RELAY_UNREGISTERED_CONNECTIONS: {
    schema: integer(0, 1_000_000),
    default: "5000",
    description:
      "Websocket connections of one pod that have not registered yet; above it the oldest is closed; 0 = no limit.",
  },
  RELAY_ENVELOPES_PER_SECOND: {
    schema: integer(0, 1_000_000),
    default: "200",
    description:
      "Envelopes per second of one connection, with a burst of five times as many, and four times as many of all connections of a key on a pod; 0 = no limit; must be the same for the gateway, which publishes it.",
  },
  RELAY_BYTES_PER_SECOND: {
    schema: integer(0, 2 ** 30),
    default: "524288",
    description:
      "Bytes per second that are read from one connection, with a burst of twice as many; 0 = no limit; must be the same for the gateway, which publishes it.",
  },
  RELAY_AGENTS_PER_KEY: {
    schema: integer(0, 1_000_000),
    default: String(WINDOW_LIMITS.agentsPerKey),
    description: "Agents that one signing key of a namespace may have in the window; 0 = no limit.",
  },
  RELAY_AGENTS_PER_ISSUER: {
    schema: integer(0, 1_000_000),
    default: String(WINDOW_LIMITS.agentsPerIssuer),
    description: "Agents with credentials of one issuer that the window holds; 0 = no limit.",
  },
  RELAY_ALLOWED_ORIGINS: {
    schema: list("must be origins such as https://app.example, separated by commas, or any", isOriginOrAny),
    default: "any",
    description: "Browser origins that may open a websocket, separated by commas, or `any`.",
  },
  RELAY_PARTITIONS: {
    schema: integer(1, 24),
    default: "1",
    // Of one partition no leases are kept, without which each failover costs living pods their routes.
    leastOnCluster: 2,
    description:
      "Number of partitions of the window; must be the same for every service, and at least 2 on a Redis Cluster.",
  },
  RELAY_GATHER_MS: {
    schema: integer(0, 10),
    default: "0",
    description:
      "Milliseconds that acceptance calls of one process and partition lie apart at least: what comes in meanwhile shares one; 0 = none waits. Heartbeats have their own, of about 250 ms.",
  },
  RELAY_OUTBOX_BYTES: {
    schema: integer(ENVELOPE_LIMITS.maxFrameBytes, 2 ** 30),
    default: "1048576",
    description:
      "Bytes of one connection's outbox: above half of them nothing new is delivered to it, above four times as many it is closed.",
  },
  RELAY_OUTBOX_TOTAL: {
    schema: integer(0, 2 ** 40),
    default: "268435456",
    description: "Bytes that may wait in all outboxes of one pod; above it the fullest is closed; 0 = no limit.",
  },
  RELAY_DRAIN_MS: {
    schema: integer(0, 600_000),
    default: "10000",
    description:
      "Time within which a stopping ws-connector closes its connections, from two seconds after its notice on; 0 = at once.",
  },
  RELAY_PUBLIC_REQUESTS_PER_MINUTE: {
    schema: integer(0, 1_000_000),
    default: String(HTTP_LIMITS.publicRequestsPerMinute),
    description: "Requests per minute of one address on each limited public surface; 0 = no limit.",
  },
  RELAY_PACKAGES_DIR: {
    schema: folder,
    default: null,
    description: "Folder of the packages that the relay hands out, made by `npm run packages`; unset = none.",
  },
  RELAY_CONTACT: {
    schema: text("must be an https: or mailto: address", isContact),
    default: null,
    description: "Where a person reaches the operator: an https: or mailto: address, published in documents and hints.",
  },
  RELAY_DEPLOY_ID: {
    schema: text("must be 1 to 128 visible ASCII characters", (id) => /^[\x21-\x7e]{1,128}$/.test(id)),
    default: "local",
    description: "Identifies the deploy; `window:reset` opens a new window when it changes.",
  },
  METRICS_PORT: {
    schema: integer(1, 65_535),
    default: null,
    differsFrom: ["PORT"],
    description: "Port of the metrics, other than PORT; unset = no metrics.",
  },
  ADMIN_PORT: {
    schema: integer(1, 65_535),
    default: null,
    differsFrom: ["PORT", "METRICS_PORT"],
    needs: "RELAY_ADMIN_KEY_FILE",
    description: "Port on which a ws-connector answers its operator, other than PORT and METRICS_PORT; unset = none.",
  },
  ADMIN_HOST: {
    schema: host,
    default: "127.0.0.1",
    description: "Address of that port; nobody but the operator should reach it.",
  },
  RELAY_ADMIN_KEY_FILE: {
    schema: file,
    default: null,
    description:
      "File with the key of that port: one line of at least 32 visible ASCII characters, which its owner alone may read; read again when it changes.",
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    schema: text("must be an http or https URL, without user and password, and without /v1/traces", isCollector),
    default: null,
    description: "Base address of an OTLP/HTTP collector that traces are sent to; unset = no traces.",
  },
  OTEL_SDK_DISABLED: {
    schema: z
      .string()
      .regex(/^(?:true|false)$/i, "must be true or false")
      .transform((word) => word.toLowerCase() === "true"),
    default: "false",
    description: "`true` = no traces, whatever else is set.",
  },
  OTEL_TRACES_SAMPLER_ARG: {
    schema: share("must be a number from 0 to 1"),
    default: "1",
    description: "Share of the traces that begin at the relay which are sampled; others are as their caller decided.",
  },
  LOG_LEVEL: {
    schema: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(", ")}`),
    default: "info",
    description: "Lowest level that is logged.",
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

function deriveBaseUrl(read: ReadSource): string | undefined {
  const host = read("HOST");
  const port = read("PORT");
  if (host === undefined || port === undefined) return undefined;
  const scheme = read("RELAY_TLS_CERT_FILE") === undefined ? "http" : "https";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
