import type Koa from "koa";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import { type CounterName, type GaugeName, type HistogramName, METRICS, type MetricEntry } from "./catalogue.ts";

/** Counts by label values, kept as plain numbers until a scrape: prom-client's `inc` would cost more on the hot path. */
export class Tally {
  readonly #counts = new Map<string, number>();

  /** @param labels the label values in the catalogue's order, separated by one space. */
  add(labels = ""): void {
    this.#counts.set(labels, (this.#counts.get(labels) ?? 0) + 1);
  }

  [Symbol.iterator](): Iterator<[string, number]> {
    return this.#counts.entries();
  }
}

/** Values by label values. The labels of a series are built once: prom-client would build them for each value. */
export class Distribution {
  readonly #histogram: Histogram;
  readonly #labels: readonly string[];
  readonly #series = new Map<string, Pick<Histogram.Internal<string>, "observe">>();

  /** @param labels of the catalogue. */
  constructor(histogram: Histogram, labels: readonly string[]) {
    this.#histogram = histogram;
    this.#labels = labels;
  }

  /** @param labels the label values as `Tally.add` takes them. */
  observe(value: number, labels = ""): void {
    (this.#series.get(labels) ?? this.#add(labels)).observe(value);
  }

  #add(labels: string): Pick<Histogram.Internal<string>, "observe"> {
    const series = this.#histogram.labels(labelled(this.#labels, labels));
    this.#series.set(labels, series);
    return series;
  }
}

/** The metrics of one service; only those that it registers appear. */
export class ServiceMetrics {
  readonly registry = new Registry();
  readonly #tallies = new Map<CounterName, Tally>();

  constructor(service: ServiceName) {
    this.registry.setDefaultLabels({ service });
  }

  /** The tally of a counter; the same one for each call with the same name. */
  counter(name: CounterName): Tally {
    const known = this.#tallies.get(name);
    if (known !== undefined) return known;
    const tally = new Tally();
    this.#tallies.set(name, tally);
    this.counterOf(name, () => tally);
    return tally;
  }

  /** A counter whose counts are kept elsewhere. @param read its counts, by label values as `Tally.add` takes them; read at each scrape. */
  counterOf(name: CounterName, read: () => Iterable<readonly [labels: string, count: number]>): void {
    const { labels } = METRICS[name];
    new Counter({
      ...this.#described(name),
      collect() {
        this.reset();
        for (const [values, count] of read()) this.inc(labelled(labels, values), count);
      },
    });
  }

  /** @param read all that the gauge shows, by label values as `Tally.add` takes them; read at each scrape. */
  gauge(name: GaugeName, read: () => Iterable<readonly [labels: string, value: number]>): void {
    const { labels } = METRICS[name];
    new Gauge({
      ...this.#described(name),
      collect() {
        // A value that is gone has no series: its last value would stay for ever, or 0 if there are no labels.
        this.reset();
        if (labels.length === 0) this.remove();
        for (const [values, value] of read()) this.set(labelled(labels, values), value);
      },
    });
  }

  histogram(name: HistogramName): Distribution {
    const { buckets, labels } = METRICS[name];
    return new Distribution(new Histogram({ ...this.#described(name), buckets: [...buckets] }), labels);
  }

  #described(name: keyof typeof METRICS) {
    const { help, labels }: MetricEntry = METRICS[name];
    return { name, help, labelNames: [...labels], registers: [this.registry] };
  }
}

function labelled(names: readonly string[], values: string): Record<string, string> {
  const parts = values.split(" ");
  return Object.fromEntries(names.map((name, index) => [name, parts[index] ?? ""]));
}

/**
 * Counts HTTP answers by surface and status, and refusals by code, and times them by group. Paths without a surface
 * count as `none`.
 */
export function observeAnswers(metrics: ServiceMetrics, app: Koa): void {
  const requests = metrics.counter("relay_http_requests_total");
  const seconds = metrics.histogram("relay_http_request_seconds");
  const refusals = metrics.counter("relay_refusals_total");
  app.on("answered", (ctx: Koa.Context, code: ErrorCode | null, tookMs: number) => {
    requests.add(`${ctx.state.surfaceId ?? "none"} ${ctx.status}`);
    seconds.observe(tookMs / 1000, ctx.state.surface?.group ?? "none");
    if (code !== null) refusals.add(code);
  });
}

/** Keys that have a series of their own in the metrics. */
const MAX_NAMED = 50;
const OTHER = "other other";

/**
 * Counts refused requests for the operator, by key or issuer. The keys that are refused most have a series each; all
 * others share `other`. Ids come from the keys file, and only requests of a key's holder count: nobody can raise
 * another's count, or add a label. Source: docs/security.md#limits.
 */
export class KeyRefusals {
  /** By kind and id; as many as the keys file has had. */
  readonly #counts = new Map<string, number>();
  readonly #named = new Set<string>();
  /** Never falls: Prometheus would read a counter that fell as a restart. */
  #others = 0;

  /** @param labels kind and id of a record in the keys file, proven by the request. */
  add(labels: string): void {
    const count = (this.#counts.get(labels) ?? 0) + 1;
    this.#counts.set(labels, count);
    if (this.#named.has(labels)) return;
    if (this.#named.size === MAX_NAMED && !this.#displaceBy(count)) this.#others += 1;
    else this.#named.add(labels);
  }

  /** Counts by label values, as ServiceMetrics takes them. */
  *[Symbol.iterator](): Generator<[string, number]> {
    for (const labels of this.#named) yield [labels, this.#counts.get(labels) ?? 0];
    if (this.#others > 0) yield [OTHER, this.#others];
  }

  /** Takes the series of the key with the lowest count when that is lower than this one. */
  #displaceBy(count: number): boolean {
    const counts = Array.from(this.#named, (labels) => ({ labels, count: this.#counts.get(labels) ?? 0 }));
    const least = counts.reduce((a, b) => (b.count < a.count ? b : a));
    return least.count < count && this.#named.delete(least.labels);
  }
}
