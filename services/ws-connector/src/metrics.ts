import { WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import { createApp, healthHandler, requireUpgrade } from "relay-runtime/http/app.ts";
import { mountSurfaces } from "relay-runtime/http/router.ts";
import type { Logger } from "relay-runtime/logging.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { Distribution, ServiceMetrics, Tally } from "relay-runtime/metrics/service-metrics.ts";
import { KeyRefusals, observeAnswers } from "relay-runtime/metrics/service-metrics.ts";
import { observeAcceptance, observeLinks, observeWindow } from "relay-window/window/observe.ts";
import { type ReadinessSources, readyHandler } from "relay-window/window/readiness.ts";
import type { OutboxBudget } from "./connection/outbox.ts";
import type { PodRedis } from "./pod-redis.ts";
import type { WsConnectorSettings } from "./settings.ts";

export interface ProbeOptions extends ReadinessSources {
  readonly logger: Logger;
  readonly settings: Pick<WsConnectorSettings, "trustedProxyHops" | "alternateWsPath">;
}

/**
 * Answers HTTP requests without an upgrade: /health, /ready, and an error on the websocket paths. Ready requires that a
 * message from the pod to its own channel came back.
 */
export function createProbes(options: ProbeOptions) {
  const handlers = { health: healthHandler("ws-connector"), ready: readyHandler("ws-connector", options) };
  const { logger, settings } = options;
  return createApp({ logger, trustedProxyHops: settings.trustedProxyHops })
    .use(requireUpgrade([WEBSOCKET_PATH, settings.alternateWsPath]))
    .use(mountSurfaces("ws-connector", handlers));
}

export type Probes = ReturnType<typeof createProbes>;

/** The counters that the parts of a pod write. */
export interface PodCounters {
  readonly opened: () => void;
  readonly closed: (code: number) => void;
  readonly upgradeRefused: (code: ErrorCode) => void;
  readonly limitReached: (limit: LimitName) => void;
  /** Error frames, by code. */
  readonly refusals: Tally;
  readonly keyRefusals: KeyRefusals;
  /** Seconds from the arrival of an envelope to its ack. */
  readonly acks: Distribution;
  /** Deliveries, by `sent`, `connection_gone` or `repeated`. */
  readonly delivered: Tally;
}

/** The parts whose values the metrics read. */
export interface PodParts extends Pick<PodRedis, "link" | "window" | "channel" | "acceptor" | "heartbeatWriter"> {
  readonly keys: { readonly isBehind: boolean };
  readonly audit: { readonly linesLost: number };
  readonly connections: { readonly size: number };
  readonly outboxBudget: OutboxBudget;
  readonly probes: Probes;
}

/** Close codes of clients, of closes without a code, and of the relay. Source: RFC 6455, section 7.4.1. */
const KNOWN_CLOSE_CODES = new Set([1000, 1005, 1006, ...Object.values(CLOSE_CODES).map(({ code }) => code)]);

export function createPodCounters(metrics: ServiceMetrics): PodCounters {
  const opened = metrics.counter("relay_connections_opened_total");
  const closed = metrics.counter("relay_connections_closed_total");
  const refused = metrics.counter("relay_connections_refused_total");
  const limits = metrics.counter("relay_limits_total");
  const keyRefusals = new KeyRefusals();
  metrics.counterOf("relay_key_refusals_total", () => keyRefusals);
  return {
    opened: () => opened.add(),
    // A client may close with any of 4000 codes. A label for each code would let clients fill the memory.
    closed: (code) => closed.add(KNOWN_CLOSE_CODES.has(code) ? String(code) : "other"),
    upgradeRefused: (code) => refused.add(code),
    limitReached: (limit) => limits.add(limit),
    refusals: metrics.counter("relay_refusals_total"),
    keyRefusals,
    acks: metrics.histogram("relay_ack_seconds"),
    delivered: metrics.counter("relay_deliver_frames_total"),
  };
}

/** Adds the metrics of a pod's parts. Each scrape reads the gauges. */
export function observePod(metrics: ServiceMetrics, parts: PodParts): void {
  const { keys, audit, connections, outboxBudget, link, window, channel, acceptor, heartbeatWriter, probes } = parts;
  observeLinks(metrics, link, () => channel.links);
  observeWindow(metrics, link, window);
  observeAcceptance(metrics, acceptor, heartbeatWriter);
  observeAnswers(metrics, probes);
  metrics.gauge("relay_keys_file_valid", () => [["", keys.isBehind ? 0 : 1]]);
  metrics.counterOf("relay_audit_lines_lost_total", () => [["", audit.linesLost]]);
  metrics.gauge("relay_connections", () => [["", connections.size]]);
  metrics.gauge("relay_partitions_unheard", () => [["", channel.unheard.length]]);
  metrics.gauge("relay_channel_ready", () => [["", channel.ready ? 1 : 0]]);
  metrics.gauge("relay_outbox_bytes", () => [["", outboxBudget.bytes]]);
  metrics.gauge("relay_outbox_bytes_max", () => [["", outboxBudget.mostBytes]]);
  metrics.gauge("relay_congested_connections", () => [["", outboxBudget.congested]]);
}
