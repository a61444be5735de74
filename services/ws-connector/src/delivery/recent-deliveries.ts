/** At least so long what was delivered is remembered, and at most twice as long. */
const REMEMBERED_MS = 60_000;
/** Beyond so many what came before them is forgotten sooner: with those it holds about 30 MB. */
const MOST = 200_000;
/** 96 bits or more of the signature, and what ends the text behind it. */
const TAIL_LENGTH = 22;

/**
 * What a pod wrote to connections lately, by the end of each signature, which nobody else's text has: a replica that took over
 * may have forgotten that an envelope was accepted, and have it delivered again. Source: docs/security.md#a-failover.
 */
export class RecentDeliveries {
  #latest = new Set<string>();
  #former = new Set<string>();
  #since = Number.NEGATIVE_INFINITY;

  /** @param text canonical text with `sig` at its end. @param now monotonic ms. */
  has(text: string, now: number): boolean {
    this.#forget(now);
    const tail = text.slice(-TAIL_LENGTH);
    return this.#latest.has(tail) || this.#former.has(tail);
  }

  /** @param text was written to a connection. @param now monotonic ms. */
  add(text: string, now: number): void {
    this.#forget(now);
    // A copy: a slice would keep all that came with the text in the memory.
    this.#latest.add(Buffer.from(text.slice(-TAIL_LENGTH)).toString("latin1"));
  }

  #forget(now: number): void {
    const age = now - this.#since;
    if (age < REMEMBERED_MS && this.#latest.size < MOST) return;
    this.#former = age < 2 * REMEMBERED_MS ? this.#latest : new Set();
    this.#latest = new Set();
    this.#since = REMEMBERED_MS <= age && age < 2 * REMEMBERED_MS ? this.#since + REMEMBERED_MS : now;
  }
}
