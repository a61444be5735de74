import type { AuditLog } from "relay-runtime/audit-log.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { Service } from "relay-runtime/lifecycle.ts";
import type { Logger } from "relay-runtime/logging.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import type { AcceptanceObserver } from "../acceptance/acceptance.ts";
import type { Counters } from "../counters/counters.ts";
import { outOfReach, SLOTS } from "../redis/partitions.ts";
import type { RedisCalls, ServerLink } from "../redis/redis-calls.ts";
import type { Replicas } from "../redis/server-info.ts";
import type { ProcessWindow, WindowIdentity } from "./process-window.ts";

interface ObservedWindow {
  readonly partitions: number;
  readonly isKnown: boolean;
  readonly current: Pick<WindowIdentity, "deployId" | "startedAt">;
}

/** Registers metrics: when the window began, and how many of its partitions are out of reach. */
export function observeWindow(metrics: ServiceMetrics, redis: RedisCalls, window: ObservedWindow): void {
  metrics.gauge("relay_partitions_out_of_reach", () => [["", outOfReach(redis, window.partitions).length]]);
  metrics.gauge("relay_window_start_time_seconds", () =>
    window.isKnown ? [[window.current.deployId, window.current.startedAt / 1000]] : [],
  );
}

/**
 * Registers metrics of the links to Redis: state, cause of a failure, call times. Also of each Redis: memory, clock and
 * replicas.
 * @param others links that make no calls.
 */
export function observeLinks(
  metrics: ServiceMetrics,
  redis: RedisCalls,
  others: () => readonly ServerLink[] = () => [],
): void {
  const seconds = metrics.histogram("relay_redis_call_seconds");
  const failures = metrics.counter("relay_redis_failures_total");
  // Before the nodes of a cluster are known, the cluster counts as one link that is down. Without a series no alert
  // would fire.
  const links = () => [...(redis.links.length === 0 ? [redis] : redis.links), ...others()];
  metrics.gauge("relay_redis_up", () => links().map((link) => [link.name, link.up ? 1 : 0]));
  metrics.gauge("relay_redis_memory_ratio", () => redis.links.map(({ name, memory }) => [name, memory.ratio]));
  metrics.gauge("relay_redis_clock_offset_seconds", () =>
    redis.links.map(({ name, clockOffsetMs }) => [name, clockOffsetMs / 1000]),
  );
  const ofReplicas = (read: (replicas: Replicas) => number) =>
    redis.links.flatMap(({ name, replicas }) => (replicas === undefined ? [] : [[name, read(replicas)] as const]));
  metrics.gauge("relay_redis_replicas", () => ofReplicas(({ count }) => count));
  metrics.gauge("relay_redis_replica_lag_bytes", () => ofReplicas(({ lagBytes }) => lagBytes));
  const promotions = metrics.counter("relay_promotions_total");
  // A replaced primary without slots, such as one that is removed, loses nothing.
  redis.onPromotion(({ hasSlot }) => {
    if (Array.from({ length: SLOTS }, (_, slot) => slot).some(hasSlot)) promotions.add("");
  });
  metrics.gauge("relay_redis_down", () =>
    links().flatMap(({ name, downKind }) => (downKind === null ? [] : [[`${name} ${downKind}`, 1] as const])),
  );
  redis.onCall((link, tookMs, failed) => {
    seconds.observe(tookMs / 1000, link);
    if (failed) failures.add(link);
  });
}

/** Registers the metric of counts that are missing from the reports. */
export function observeCounters(metrics: ServiceMetrics, counters: Counters): void {
  metrics.counterOf("relay_counts_lost_total", () => [["", counters.lost]]);
}

/**
 * Registers metrics of envelopes by type and outcome, reached session limits, deliveries by status, and envelopes per
 * Redis call.
 */
export function observeAcceptance(
  metrics: ServiceMetrics,
  ...accepting: readonly { observe(observer: AcceptanceObserver): void }[]
): void {
  const sizes = metrics.histogram("relay_acceptance_batch_size");
  const envelopes = metrics.counter("relay_envelopes_total");
  const deliveries = metrics.counter("relay_deliveries_total");
  const limits = metrics.counter("relay_limits_total");
  const observer: AcceptanceObserver = {
    called: (size) => sizes.observe(size),
    settled: ({ envelope }, acceptance) => {
      if (acceptance.outcome === "rate_limited") limits.add(acceptance.limit);
      if (acceptance.outcome === "over_capacity") limits.add("redis_memory" satisfies LimitName);
      if (acceptance.outcome === "agents_per_key") limits.add("agents_per_key" satisfies LimitName);
      if (!("about" in acceptance)) return;
      envelopes.add(`${typeLabel(envelope.type)} ${acceptance.outcome}`);
      const isNew = acceptance.outcome === "accepted";
      if (acceptance.about === "delivery" && isNew) deliveries.add(acceptance.delivery);
    },
  };
  for (const one of accepting) one.observe(observer);
}

/** The sender chooses the word in `message.<word>`. A label value for each word would let agents fill the memory. */
function typeLabel(type: string): string {
  return type.startsWith("message.") ? "message" : type;
}

/** Pause between two looks. It is longer after a log line, so that a flapping link does not fill the log. */
const LOOK_MS = 1000;
const LOOK_AFTER_LINE_MS = 5000;

/**
 * Logs which partitions of a cluster are out of reach, and when they are back. One line covers all that changed. The
 * links know it, so nothing is asked of Redis. With one partition the link's own lines say the same.
 */
export class ReachLog implements Service {
  readonly #link: RedisCalls;
  readonly #partitions: number;
  readonly #logger: Logger;
  /** The partitions that the last line named. */
  #told: readonly number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { readonly link: RedisCalls; readonly partitions: number; readonly logger: Logger }) {
    this.#link = options.link;
    this.#partitions = options.partitions;
    this.#logger = options.logger;
  }

  async start(): Promise<void> {
    if (this.#partitions > 1) this.#look();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
  }

  #look(): void {
    const missing = outOfReach(this.#link, this.#partitions);
    const hasChanged = missing.join() !== this.#told.join();
    if (hasChanged) this.#tell(missing);
    this.#timer = setTimeout(() => this.#look(), hasChanged ? LOOK_AFTER_LINE_MS : LOOK_MS);
  }

  #tell(missing: readonly number[]): void {
    const back = this.#told.filter((p) => !missing.includes(p));
    this.#told = missing;
    const text = missing.length === 0 ? "all partitions are in reach again" : "partitions are out of reach";
    this.#logger.warn({ link: this.#link.name, out_of_reach: missing, back }, text);
  }
}

/**
 * Writes each window that a service enters, and each change of the keys file, to its audit log. A rewrite of the file
 * without a change is not written.
 */
export function auditWindowsAndKeys(audit: AuditLog, window: ProcessWindow, keys: KeyStore): void {
  if (!audit.isKept) return;
  window.onChange(() => {
    const { id, deployId } = window.current;
    audit.write({ event: "window_entered", window: id, deploy: deployId });
  });
  keys.onChange((ring, before) => {
    const changes = ring.changesSince(before);
    if (Object.values(changes).every(({ length }) => length === 0)) return;
    audit.write({ event: "keys_changed", ...changes });
  });
}
