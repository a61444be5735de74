/** Chance that can be had again: the same seed, the same throws. */
export class SeededRandom {
  #state: number;

  /** @param seed an integer of 32 bits. */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 on, below 1. Source: mulberry32 by Tommy Ettinger, in the public domain. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 on, below `n`. */
  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  /** An integer from 0 on, below `n`, which is not `taken`. */
  other(n: number, taken: number): number {
    return (taken + 1 + this.below(n - 1)) % n;
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** One of the names, each as often as its weight says. */
  weighed<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let rest = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      rest -= weight;
      if (rest < 0) return name;
    }
    return (entries.at(-1) as [Name, number])[0];
  }
}
