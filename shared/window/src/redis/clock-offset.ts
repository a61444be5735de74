import type { Logger } from "relay-runtime/logging.ts";

/** The clocks of primaries and services are to be within this. Source: docs/operations.md#a-redis-cluster. */
const MOST_MS = 1000;

/**
 * How far the clock of a Redis is from that of this process, at least: it told its time between the question and the reading of the
 * answer, so however late either came, no clock that is right is called wrong.
 */
export class ClockOffset {
  readonly #link: string;
  readonly #logger: Logger;
  #ms = 0;
  #isWrong = false;

  constructor(link: string, logger: Logger) {
    this.#link = link;
    this.#logger = logger;
  }

  /** Above zero where Redis is ahead. */
  get ms(): number {
    return this.#ms;
  }

  /** One line a change. @param unixMs what Redis told. @param asked Unix ms here, as is `read`. */
  told(unixMs: number, asked: number, read: number): void {
    this.#ms = Math.max(0, unixMs - read) + Math.min(0, unixMs - asked);
    const isWrong = Math.abs(this.#ms) > MOST_MS;
    if (isWrong === this.#isWrong) return;
    this.#isWrong = isWrong;
    const context = { link: this.#link, offset_ms: Math.round(this.#ms) };
    if (isWrong) this.#logger.warn(context, "the clock of redis is more than a second from that of this process");
    else this.#logger.info(context, "the clock of redis is that of this process again");
  }
}
