/** Turns of the event loop in a row that are yielded to connections that wait to be accepted. */
const MOST_YIELDED = 8;
/** Ms of a turn of the event loop in which requests of further addresses begin. */
const SLICE_MS = 1;
/** Requests of one address that begin in a turn, at most. */
const MOST_OF_ADDRESS = 16;
/** Ms of a turn, all that is done in it counted, after which only one of each address begins in the next. */
const SHORT_TURN_MS = 4;
/** Where more addresses wait, none is yielded: whoever is let in would wait for a turn of each. */
const FEW_ADDRESSES = 4;

/**
 * Requests that wait to be answered. Node hands over, at once, the requests of all connections that it finds readable: whoever
 * has hundreds of connections would have hundreds answered before the one of anybody else. Here one of each address begins in
 * a turn of the event loop, of as many addresses as fit into a slice: addresses take turns, and the requests of each stand
 * in order. After each short turn twice as many of an address may begin, since what begins together shares its calls of Redis;
 * after a long one, or when somebody connects, it is one again. Source: docs/protocol.md#sharing-a-relay.
 */
export class RequestQueue {
  /** By address; who is next stands first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isScheduled = false;
  #hasAccepted = false;
  /** Turns in a row. */
  #yielded = 0;
  /** Monotonic ms. */
  #ranAt = Number.NEGATIVE_INFINITY;
  /** How many of each address may begin in this turn. */
  #ofEach = 1;

  /**
   * A connection was accepted, the one that Node accepts in a turn of the event loop. Where others wait, a newcomer would have
   * to wait for as many requests: turns are yielded to them, most of the time, while few addresses have requests.
   */
  accepted(): void {
    this.#hasAccepted = true;
  }

  /** @param address of the client; kept until the request begins. */
  join(address: string, begin: () => void): void {
    const ofAddress = this.#waiting.get(address);
    if (ofAddress === undefined) this.#waiting.set(address, [begin]);
    else ofAddress.push(begin);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => this.#run());
  }

  #run(): void {
    this.#isScheduled = false;
    const now = performance.now();
    const maySpeedUp = now - this.#ranAt < SHORT_TURN_MS && !this.#hasAccepted;
    this.#ofEach = maySpeedUp ? Math.min(this.#ofEach * 2, MOST_OF_ADDRESS) : 1;
    this.#ranAt = now;
    if (!this.#mustYield()) this.#beginSome(now + SLICE_MS);
    this.#schedule();
  }

  /** Requests of each address in turn, until then: at least one, or a slow one would keep all others waiting. */
  #beginSome(until: number): void {
    for (let round = 0; round < this.#ofEach; round += 1) {
      for (let addresses = this.#waiting.size; addresses > 0; addresses -= 1) {
        this.#next()?.();
        if (performance.now() >= until) return;
      }
    }
  }

  #mustYield(): boolean {
    const mustYield = this.#hasAccepted && this.#yielded < MOST_YIELDED && this.#waiting.size <= FEW_ADDRESSES;
    this.#hasAccepted = false;
    this.#yielded = mustYield ? this.#yielded + 1 : 0;
    return mustYield;
  }

  /** Takes the first request of who is next; its address, where others wait, goes to the end. */
  #next(): (() => void) | undefined {
    for (const [address, ofAddress] of this.#waiting) {
      const first = ofAddress.shift();
      this.#waiting.delete(address);
      if (ofAddress.length > 0) this.#waiting.set(address, ofAddress);
      return first;
    }
    return undefined;
  }
}
