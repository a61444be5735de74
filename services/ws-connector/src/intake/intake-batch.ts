import type { Logger } from "relay-runtime/logging.ts";

/** How long a text waits at most. */
export const BATCH_WAIT_MS = 25;
/** As many texts go on at once: more would keep the event loop from those that do not wait. */
export const MOST_IN_BATCH = 32;
/** Longer ones do not wait: so many of them together would take their time. */
const LONGEST_TEXT = 1024;
/** Stands in every heartbeat, as a value, and in few other texts: within a string its quotes would be escaped. */
const HEARTBEAT = '"agent.heartbeat"';

/** True for what may be the text of a heartbeat. Nothing but when it is looked at depends on it. */
export function mayBeHeartbeat(text: string): boolean {
  return text.length <= LONGEST_TEXT && text.includes(HEARTBEAT);
}

/**
 * Texts of all connections of a pod that need no answer at once, and are taken in together: a processor that has done something
 * else in between takes about twice as long for one alone. Source: docs/redis.md#heartbeat-writer.
 */
export class IntakeBatch {
  readonly #logger: Logger;
  #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor({ logger }: { readonly logger: Logger }) {
    this.#logger = logger;
  }

  /** @param takeIn is called once, after those that were called for before. */
  add(takeIn: () => void): void {
    this.#waiting.push(takeIn);
    if (this.#waiting.length >= MOST_IN_BATCH) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_WAIT_MS);
  }

  /** Has all that waits taken in now: what its caller does next comes after it. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const takeIn of waiting) this.#takeIn(takeIn);
  }

  /** One that fails keeps back no other, nor what its caller does next. */
  #takeIn(takeIn: () => void): void {
    try {
      takeIn();
    } catch (err) {
      this.#logger.error({ err }, "the intake of a heartbeat failed");
    }
  }
}
