/** Keys that have a series of their own in the metrics. */
const MAX_NAMED = 50;
const OTHER = "other";

/**
 * How often requests of each key were refused, for the operator: the keys that are refused most have a series each, all
 * others share `other`. Ids come from the keys file, and only what a key's holder sent is counted: nobody makes another's
 * key stand out, or a label. Source: docs/security.md#limits.
 */
export class KeyRefusals {
  /** By key id; as many as the keys file has had. */
  readonly #counts = new Map<string, number>();
  readonly #named = new Set<string>();
  /** Never falls: a counter that fell would be read as one that began anew. */
  #others = 0;

  /** @param keyId of a key in the keys file, proven by the request. */
  add(keyId: string): void {
    const count = (this.#counts.get(keyId) ?? 0) + 1;
    this.#counts.set(keyId, count);
    if (this.#named.has(keyId)) return;
    if (this.#named.size === MAX_NAMED && !this.#displaceBy(count)) this.#others += 1;
    else this.#named.add(keyId);
  }

  /** Counts by label value, as ServiceMetrics takes them. */
  *[Symbol.iterator](): Generator<[string, number]> {
    for (const keyId of this.#named) yield [keyId, this.#counts.get(keyId) ?? 0];
    if (this.#others > 0) yield [OTHER, this.#others];
  }

  /** Takes the series of the key with the lowest count when that is lower than this one. */
  #displaceBy(count: number): boolean {
    const counts = Array.from(this.#named, (keyId) => ({ keyId, count: this.#counts.get(keyId) ?? 0 }));
    const least = counts.reduce((a, b) => (b.count < a.count ? b : a));
    return least.count < count && this.#named.delete(least.keyId);
  }
}
