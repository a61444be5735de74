/** Turns of the event loop in a row that are yielded to connections that wait to be accepted. */
const MOST_YIELDED = 8;
/** Ms of a turn of the event loop in which requests of further addresses begin. */
const SLICE_MS = 1;
/** Requests of one address that begin in a turn, at most. */
const MOST_OF_ADDRESS = 16;
/** Ms of a turn, all that is done in it counted, after which only one of each address begins in the next. */
const SHORT_TURN_MS = 4;
/** With more addresses waiting, no turn is yielded: each newcomer would wait for a turn of every address. */
const FEW_ADDRESSES = 4;

/**
 * Requests that wait to be answered. Node hands over the requests of all readable connections at once, so a client with
 * hundreds of connections would be answered hundreds of times before any other. Here one request of each address begins
 * in a turn of the event loop, of as many addresses as fit into a slice. Addresses take turns, and each one's requests
 * stay in order. After each short turn twice as many of an address may begin, because requests that begin together
 * share calls of Redis. After a long turn, or a new connection, it is one again. Source:
 * docs/protocol.md#sharing-a-relay.
 */
export class RequestQueue {
  /** By address; the next one is first. */
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
   * Node accepted a connection; it accepts one in each turn of the event loop. While requests wait, a newcomer would
   * wait for as many of them. So most turns are yielded to newcomers, as long as few addresses have requests.
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

  /** Takes the first request of the next address. The address goes to the end if it has more. */
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
