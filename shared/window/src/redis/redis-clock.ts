/**
 * The time at Redis, as far as its answers tell: it gave each after the command was sent and before it was read. So it is
 * known to within the round trip of the fastest of them, however late this process came to read the others, and follows a
 * clock that is set forward or back. Never taken for later than it was by any answer, but for what the two clocks drift
 * apart until the next one. Pure. Source: docs/redis.md#deadlines.
 */
export class RedisClock {
  /** Unix ms at Redis less monotonic ms here, at least. */
  #lead = 0;

  /**
   * Redis answered that it was so late.
   * @param unixMs what it told.
   * @param sentAt monotonic ms; so is `readAt`.
   */
  told(unixMs: number, sentAt: number, readAt: number): void {
    const least = unixMs - readAt;
    const isSetBack = this.#lead > unixMs - sentAt;
    this.#lead = isSetBack ? least : Math.max(this.#lead, least);
  }

  /** Unix ms that it is at Redis, at least. @param now monotonic ms. */
  at(now: number): number {
    return now + this.#lead;
  }
}

/** Unix ms of an INFO that has its section server; undefined where Redis does not tell. */
export function timeIn(info: string): number | undefined {
  const [, microseconds] = /^server_time_usec:(\d+)/m.exec(info) ?? [];
  return microseconds === undefined ? undefined : Number(microseconds) / 1000;
}
