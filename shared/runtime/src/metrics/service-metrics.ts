import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ServiceName } from "protocol/contract/surface.ts";
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
    this.counterOf(name, tally);
    return tally;
  }

  /** A counter whose counts are kept elsewhere. @param counts by label values as `Tally.add` takes them; read at each scrape. */
  counterOf(name: CounterName, counts: Iterable<readonly [labels: string, count: number]>): void {
    const { labels } = METRICS[name];
    new Counter({
      ...this.#described(name),
      collect() {
        this.reset();
        for (const [values, count] of counts) this.inc(labelled(labels, values), count);
      },
    });
  }

  /** @param read all that the gauge shows, by label values as `Tally.add` takes them; read at each scrape. */
  gauge(name: GaugeName, read: () => Iterable<readonly [labels: string, value: number]>): void {
    const { labels } = METRICS[name];
    new Gauge({
      ...this.#described(name),
      collect() {
        // What is not there any more has no series: its last value would stand for ever.
        this.reset();
        for (const [values, value] of read()) this.set(labelled(labels, values), value);
      },
    });
  }

  histogram(name: HistogramName): Histogram {
    return new Histogram({ ...this.#described(name), buckets: [...METRICS[name].buckets] });
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
