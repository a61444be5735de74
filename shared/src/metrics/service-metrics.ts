import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ServiceName } from "../contract/surface.ts";
import { type CounterName, type GaugeName, type HistogramName, METRICS, type MetricEntry } from "./catalogue.ts";

/** Counts by label values: plain numbers until somebody scrapes, so that counting costs next to nothing. */
export class Tally {
  readonly #counts = new Map<string, number>();

  /** @param labels the label values in the catalogue's order, divided by one space. */
  add(labels = ""): void {
    this.#counts.set(labels, (this.#counts.get(labels) ?? 0) + 1);
  }

  [Symbol.iterator](): Iterator<[string, number]> {
    return this.#counts.entries();
  }
}

/** The metrics of one service; only those that it counts appear. */
export class ServiceMetrics {
  readonly registry = new Registry();
  readonly #tallies = new Map<CounterName, Tally>();

  constructor(service: ServiceName) {
    this.registry.setDefaultLabels({ service });
  }

  /** The tally behind a counter; one for each name. */
  counter(name: CounterName): Tally {
    const known = this.#tallies.get(name);
    if (known !== undefined) return known;
    const tally = new Tally();
    this.#tallies.set(name, tally);
    const { labels } = METRICS[name];
    new Counter({
      ...this.#described(name),
      collect() {
        this.reset();
        for (const [values, count] of tally) this.inc(labelled(labels, values), count);
      },
    });
    return tally;
  }

  /** @param read what the gauge shows, by label values as `Tally.add` takes them; asked at each scrape. */
  gauge(name: GaugeName, read: () => Iterable<readonly [labels: string, value: number]>): void {
    const { labels } = METRICS[name];
    new Gauge({
      ...this.#described(name),
      collect() {
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
