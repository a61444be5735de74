/** Keys that have a series of their own in the metrics. */
const MAX_NAMED = 50;
const OTHER = "other other";

/**
 * How often requests of each key, or issuer, were refused, for the operator: those that are refused most have a series
 * each, all others share `other`. Ids come from the keys file, and only what a key's holder sent is counted: nobody makes
 * another's key stand out, or a label. Source: docs/security.md#limits.
 */
export class KeyRefusals {
  /** By kind and id; as many as the keys file has had. */
  readonly #counts = new Map<string, number>();
  readonly #named = new Set<string>();
  /** Never falls: a counter that fell would be read as one that began anew. */
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
