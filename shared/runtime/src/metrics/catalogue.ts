/** One metric of the relay; every series of it also carries the label `service`. */
export interface MetricEntry {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /**
   * Label names. Their values come from closed sets and never name an agent, connection or address. `id` alone names keys, and
   * `deploy` is what the operator set.
   */
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

const counter = (help: string, ...labels: string[]) => ({ type: "counter", help, labels }) as const;
const gauge = (help: string, ...labels: string[]) => ({ type: "gauge", help, labels }) as const;
const histogram = (help: string, buckets: readonly number[], ...labels: string[]) =>
  ({ type: "histogram", help, labels, buckets }) as const;

// The last bucket of each is a limit of shared/window, which this package may not import; a test compares them.
/** Powers of two up to the most envelopes of one acceptance call. */
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/** Seconds, up to the timeout of a command. */
const CALL_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.45];
/** Seconds: an answer usually takes less than 5 ms, and one that waits for a command of Redis at most 450 ms. */
const ANSWER_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.45, 1, 2.5];

/** The limits against abuse, as `relay_limits_total` names them. Source: docs/security.md#limits. */
export const LIMITS = [
  "http_connections",
  "http_address_connections",
  "http_waiting_requests",
  "pod_connections",
  "pod_unregistered",
  "address_connections",
  "address_unregistered",
  "address_opens",
  "register_within",
  "unregistered_intake",
  "envelopes",
  "bytes",
  "key_envelopes",
  "key_bytes",
  "pings",
  "unfinished_text",
  "refusals_in_a_row",
  "outbox",
  "outbox_total",
  "outbox_stalled",
  "api_key_requests",
  "failed_keys",
  "feedback",
  "self_test",
  "check_online",
  "session_lookups",
  "credential_lookups",
  "target_reads",
  "pending_sessions",
  "agent_pending_sessions",
  "opened_sessions",
  "key_opened_sessions",
  "agents_per_key",
  "redis_memory",
] as const;
export type LimitName = (typeof LIMITS)[number];

/** Every metric of the relay, once; those of the process itself are prom-client's defaults. */
export const METRICS = {
  relay_connections: gauge("Open websocket connections of this pod."),
  relay_connections_opened_total: counter("Websocket connections that were opened."),
  relay_connections_closed_total: counter("Websocket connections that were closed, by close code.", "code"),
  relay_connections_refused_total: counter("Websocket upgrades that were refused, by error code.", "code"),
  relay_outbox_bytes: gauge("Bytes queued to be sent, over all connections of this pod."),
  relay_outbox_bytes_max: gauge("Bytes queued on the connection with the longest queue."),
  relay_congested_connections: gauge("Connections that read too slowly: nothing new is delivered to their agents."),
  relay_envelopes_total: counter(
    "Envelopes that were accepted or recognised as duplicates, by type and outcome.",
    "type",
    "outcome",
  ),
  relay_refusals_total: counter("Error frames and problem documents sent, by error code.", "code"),
  relay_key_refusals_total: counter(
    "Requests refused or limited that were proven to come from a key's holder, by kind (key, api, issuer) and id of its record in the keys file: the 50 refused most, the rest as other.",
    "kind",
    "id",
  ),
  relay_limits_total: counter(
    "How often a limit was reached: requests and connections that were refused for it, connections that were closed or paused, by limit.",
    "limit",
  ),
  relay_deliveries_total: counter(
    "Accepted messages and session envelopes, by the target's delivery status.",
    "status",
  ),
  relay_deliver_frames_total: counter("Deliveries that reached this pod, by outcome.", "outcome"),
  relay_ack_seconds: histogram(
    "Time from when an envelope came in to its ack. Heartbeats are left out: they wait for each other.",
    ANSWER_SECONDS,
  ),
  relay_acceptance_batch_size: histogram("Envelopes that one acceptance call carried.", BATCH_SIZES),
  relay_keys_file_valid: gauge(
    "1 while the keys file can be read and is valid; while it is 0 the keys of the last valid one go on.",
  ),
  relay_redis_up: gauge("1 while the link to Redis takes commands.", "link"),
  relay_redis_down: gauge(
    "1 while the link to Redis takes no commands, by kind of reason; no series for other kinds, nor while it does.",
    "link",
    "kind",
  ),
  relay_redis_call_seconds: histogram("Time that Redis took to answer, or not to.", CALL_SECONDS, "link"),
  relay_redis_failures_total: counter("Calls that Redis did not carry out in time.", "link"),
  relay_partitions_out_of_reach: gauge("Partitions of the window whose Redis takes no calls of this service."),
  relay_partitions_unheard: gauge("Partitions of the window of which this pod gets no deliveries."),
  relay_redis_memory_ratio: gauge(
    "Memory that Redis uses, as a share of its maxmemory; 0 where it has no limit.",
    "link",
  ),
  relay_redis_clock_offset_seconds: gauge(
    "How far the clock of Redis is ahead of this process's, at least; below zero where it is behind.",
    "link",
  ),
  relay_redis_replicas: gauge("Replicas that follow a primary of a Redis Cluster; no series for one Redis.", "link"),
  relay_redis_replica_lag_bytes: gauge(
    "How far the replica of a primary that has least is behind; no series for one Redis.",
    "link",
  ),
  relay_promotions_total: counter("Primaries of a Redis Cluster that were replaced by a replica, and not by request."),
  relay_counts_lost_total: counter(
    "Views, checks and self-tests that could not be written to Redis within 60 s, and are missing from the reports.",
  ),
  relay_window_start_time_seconds: gauge(
    "When the process window began, in Unix time, by the RELAY_DEPLOY_ID that it was opened with.",
    "deploy",
  ),
  relay_channel_ready: gauge(
    "1 while messages that the pod sends to itself come back; as it was while all of Redis is silent.",
  ),
  relay_http_requests_total: counter("HTTP requests answered, by surface and status.", "surface", "status"),
  relay_http_request_seconds: histogram(
    "Time that the answer to an HTTP request took to make, by group of surfaces.",
    ANSWER_SECONDS,
    "group",
  ),
  relay_certificate_end_time_seconds: gauge(
    "When the certificate of RELAY_TLS_CERT_FILE ends, in Unix time; no series without one.",
  ),
  relay_audit_lines_lost_total: counter("Lines of the audit log that could not be written."),
} as const satisfies Record<string, MetricEntry>;

type NameOf<Type extends MetricEntry["type"]> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]["type"] extends Type ? Name : never;
}[keyof typeof METRICS];
export type CounterName = NameOf<"counter">;
export type GaugeName = NameOf<"gauge">;
export type HistogramName = NameOf<"histogram">;
