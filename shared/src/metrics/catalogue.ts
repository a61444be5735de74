import { REDIS_LIMITS } from "../contract/limits.ts";

/** One metric of the relay; every series of it also carries the label `service`. */
export interface MetricEntry {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Label names. Their values come from closed sets: no agent, key, connection or address is ever one. */
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

const counter = (help: string, ...labels: string[]) => ({ type: "counter", help, labels }) as const;
const gauge = (help: string, ...labels: string[]) => ({ type: "gauge", help, labels }) as const;
const histogram = (help: string, buckets: readonly number[], ...labels: string[]) =>
  ({ type: "histogram", help, labels, buckets }) as const;

/** Powers of two up to what one acceptance call carries. */
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, REDIS_LIMITS.acceptanceBatch];
/** Seconds, up to the timeout of a command. */
const CALL_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, REDIS_LIMITS.commandTimeoutMs / 1000];

/** The limits against abuse, as `relay_limits_total` names them; docs/security.md says of each what it bounds. */
export const LIMITS = [
  "pod_connections",
  "pod_unregistered",
  "address_connections",
  "address_unregistered",
  "address_opens",
  "register_within",
  "envelopes",
  "refusals_in_a_row",
  "api_key_requests",
  "failed_keys",
  "feedback",
  "self_test",
  "check_online",
  "session_lookups",
] as const;
export type LimitName = (typeof LIMITS)[number];

/** Every metric of the relay, once; those of the process itself are prom-client's defaults. */
export const METRICS = {
  relay_connections: gauge("Open websocket connections of this pod."),
  relay_connections_opened_total: counter("Websocket connections that were opened."),
  relay_connections_closed_total: counter("Websocket connections that ended, by close code.", "code"),
  relay_connections_refused_total: counter("Websocket upgrades that were refused, by error code.", "code"),
  relay_outbox_bytes: gauge("Bytes that wait to be sent, over all connections of this pod."),
  relay_outbox_bytes_max: gauge("Bytes that wait on the connection that is furthest behind."),
  relay_envelopes_total: counter(
    "Envelopes that acceptance took or recognised as a repeat, by type and outcome.",
    "type",
    "outcome",
  ),
  relay_refusals_total: counter("Error frames and problem documents sent, by error code.", "code"),
  relay_limits_total: counter("Requests, connections and envelopes that a limit against abuse struck.", "limit"),
  relay_deliveries_total: counter(
    "Accepted messages and session envelopes, by the target's delivery status.",
    "status",
  ),
  relay_deliver_frames_total: counter("Deliveries that reached this pod, by what became of them.", "outcome"),
  relay_acceptance_batch_size: histogram("Envelopes that one acceptance call carried.", BATCH_SIZES),
  relay_redis_up: gauge("1 while the link to Redis takes commands.", "link"),
  relay_redis_call_seconds: histogram("Time that Redis took to answer, or not to.", CALL_SECONDS, "link"),
  relay_redis_failures_total: counter("Calls that Redis did not carry out in time.", "link"),
  relay_channel_ready: gauge(
    "1 while messages that the pod sends to itself come back; as it was while all of Redis is silent.",
  ),
  relay_http_requests_total: counter("HTTP requests answered, by surface and status.", "surface", "status"),
} as const satisfies Record<string, MetricEntry>;

type NameOf<Type extends MetricEntry["type"]> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]["type"] extends Type ? Name : never;
}[keyof typeof METRICS];
export type CounterName = NameOf<"counter">;
export type GaugeName = NameOf<"gauge">;
export type HistogramName = NameOf<"histogram">;
