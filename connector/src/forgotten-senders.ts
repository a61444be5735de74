const BUCKETS = 65_536;

/**
 * Of each sender that was forgotten, a time not before that of its newest envelope, in room that does not grow: senders share
 * buckets, by a hash that begins with a secret, so that nobody can choose whose bucket it shares.
 */
export class ForgottenSenders {
  readonly #seed = crypto.getRandomValues(new Uint32Array(1))[0] as number;
  /** Made when the first sender is forgotten, which few connectors come to. */
  #newest: Float64Array | undefined;

  /** -Infinity for one that was never forgotten, nor shares a bucket with one that was. */
  newestOf(sender: string): number {
    return this.#newest?.[this.#bucketOf(sender)] ?? Number.NEGATIVE_INFINITY;
  }

  add(sender: string, newest: number): void {
    this.#newest ??= new Float64Array(BUCKETS).fill(Number.NEGATIVE_INFINITY);
    const bucket = this.#bucketOf(sender);
    this.#newest[bucket] = Math.max(this.#newest[bucket] as number, newest);
  }

  /** The mixing of MurmurHash3, a character at a time. */
  #bucketOf(sender: string): number {
    let hash = this.#seed;
    for (let n = 0; n < sender.length; n += 1) {
      hash = Math.imul(hash ^ Math.imul(sender.charCodeAt(n), 0xcc9e2d51), 0x1b873593);
      hash ^= hash >>> 15;
    }
    return (Math.imul(hash, 0x85ebca6b) >>> 16) % BUCKETS;
  }
}
