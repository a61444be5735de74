import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import type { AcceptanceObserver } from "../acceptance/acceptance.ts";
import type { Counters } from "../counters/counters.ts";
import { outOfReach, SLOTS } from "../redis/partitions.ts";
import type { RedisCalls, ServerLink } from "../redis/redis-calls.ts";
import type { Replicas } from "../redis/replica-progress.ts";
import type { WindowIdentity } from "./window-identity.ts";

interface ObservedWindow {
  readonly partitions: number;
  readonly isKnown: boolean;
  readonly current: Pick<WindowIdentity, "deployId" | "startedAt">;
}

/** When the window began, and how many of its partitions the service's calls do not reach. */
export function observeWindow(metrics: ServiceMetrics, redis: RedisCalls, window: ObservedWindow): void {
  metrics.gauge("relay_partitions_out_of_reach", () => [["", outOfReach(redis, window.partitions).length]]);
  metrics.gauge("relay_window_start_time_seconds", () =>
    window.isKnown ? [[window.current.deployId, window.current.startedAt / 1000]] : [],
  );
}

/**
 * State of the service's links to Redis, why one is down, how long calls take; how full each Redis is, its clock, and what follows it. @param others links that make no calls.
 */
export function observeLinks(
  metrics: ServiceMetrics,
  redis: RedisCalls,
  others: () => readonly ServerLink[] = () => [],
): void {
  const seconds = metrics.histogram("relay_redis_call_seconds");
  const failures = metrics.counter("relay_redis_failures_total");
  // A cluster whose nodes are not known yet is down as a whole: without a series no alert would tell of it.
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
  // One that has no slots, as when it is taken away, forgets nothing.
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

/** What was counted and is missing from the reports. */
export function observeCounters(metrics: ServiceMetrics, counters: Counters): void {
  metrics.counterOf("relay_counts_lost_total", () => [["", counters.lost]]);
}

/** Envelopes by type and outcome, limits of sessions, deliveries by status, and how many envelopes one call to Redis carried. */
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

/** The sender chooses the word in `message.<word>`: a label value for each would let agents fill the memory. */
function typeLabel(type: string): string {
  return type.startsWith("message.") ? "message" : type;
}
