import type { ErrorCode } from "@agent-relay/shared/contract/errors.ts";
import { CLOSE_CODES } from "@agent-relay/shared/contract/errors.ts";
import type { LimitName } from "@agent-relay/shared/metrics/catalogue.ts";
import { observeAcceptor, observeAnswers, observeLinks } from "@agent-relay/shared/metrics/observe.ts";
import { ServiceMetrics, type Tally } from "@agent-relay/shared/metrics/service-metrics.ts";
import type { Acceptor } from "@agent-relay/shared/window/acceptor.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import type Koa from "koa";
import type { Connection } from "./connection.ts";
import type { PodChannel } from "./pod-channel.ts";

/** What the pod counts beside what it is watched for. */
export interface PodMetrics {
  readonly registry: ServiceMetrics["registry"];
  readonly opened: () => void;
  readonly closed: (code: number) => void;
  readonly upgradeRefused: (code: ErrorCode) => void;
  readonly struck: (limit: LimitName) => void;
  /** Error frames, by code. */
  readonly refusals: Tally;
  /** Deliveries, by `sent` or `connection_gone`. */
  readonly delivered: Tally;
}

export interface PodParts {
  readonly connections: ReadonlyMap<string, Connection>;
  readonly link: RedisLink;
  readonly channel: PodChannel;
  readonly acceptor: Acceptor;
  readonly probes: Koa;
}

/** The codes of RFC 6455, section 7.4.1, that a connection of ours can end with, and the relay's own. */
const KNOWN_CLOSE_CODES = new Set([
  1000,
  1005,
  1006,
  1007,
  1009,
  ...Object.values(CLOSE_CODES).map(({ code }) => code),
]);

/** Metrics of one pod; what can be asked is asked at each scrape. */
export function createPodMetrics({ connections, link, channel, acceptor, probes }: PodParts): PodMetrics {
  const metrics = new ServiceMetrics("ws-connector");
  observeLinks(metrics, [link, channel.subscriber]);
  observeAcceptor(metrics, acceptor);
  observeAnswers(metrics, probes);
  metrics.gauge("relay_connections", () => [["", connections.size]]);
  metrics.gauge("relay_channel_ready", () => [["", channel.ready ? 1 : 0]]);
  const waiting = () => Array.from(connections.values(), ({ outboxBytes }) => outboxBytes);
  metrics.gauge("relay_outbox_bytes", () => [["", waiting().reduce((sum, bytes) => sum + bytes, 0)]]);
  metrics.gauge("relay_outbox_bytes_max", () => [["", waiting().reduce((most, bytes) => Math.max(most, bytes), 0)]]);

  const opened = metrics.counter("relay_connections_opened_total");
  const closed = metrics.counter("relay_connections_closed_total");
  const refused = metrics.counter("relay_connections_refused_total");
  const limits = metrics.counter("relay_limits_total");
  return {
    registry: metrics.registry,
    opened: () => opened.add(),
    // A client may close with any of 4000 codes.
    closed: (code) => closed.add(KNOWN_CLOSE_CODES.has(code) ? String(code) : "other"),
    upgradeRefused: (code) => refused.add(code),
    struck: (limit) => limits.add(limit),
    refusals: metrics.counter("relay_refusals_total"),
    delivered: metrics.counter("relay_deliver_frames_total"),
  };
}
