import type { RedisDownKind } from "protocol/contract/responses.ts";
import type { Logger } from "runtime/logging.ts";
import { LinkDownError, linkDown, retryDelayMs } from "./link-down.ts";

/** Whether a link is up, or why it is down: what is logged of it, and the pause before its next attempt, follow from that. */
export class LinkState {
  readonly #link: string;
  readonly #logger: Logger;
  #down: LinkDownError | null = new LinkDownError("refused", "not connected yet");
  /** What was logged last. */
  #reported: RedisDownKind | "up" | undefined;
  /** Connections that closed since the link was last up. */
  #attempts = 0;
  #ended = false;

  constructor(link: string, logger: Logger) {
    this.#link = link;
    this.#logger = logger;
  }

  /** Why the link is down; null while it is up. */
  get down(): LinkDownError | null {
    return this.#down;
  }

  goUp(): void {
    this.#attempts = 0;
    this.#down = null;
    this.#report();
  }

  goDown(cause: unknown): void {
    this.#down = linkDown(cause);
    this.#report();
  }

  /** From here on nothing is logged. */
  end(): void {
    this.#ended = true;
  }

  /** Milliseconds until the next attempt. To be asked once a connection that closed. */
  nextDelayMs(): number {
    this.#attempts += 1;
    return retryDelayMs(this.#attempts, this.#down?.kind ?? "refused");
  }

  /** One line a change of state: attempts that fail like the one before are not told again. */
  #report(): void {
    const state = this.#down?.kind ?? "up";
    if (this.#ended || state === this.#reported) return;
    this.#reported = state;
    if (this.#down === null) this.#logger.info({ link: this.#link }, "redis link is up");
    else this.#logger.warn({ link: this.#link, kind: state, reason: this.#down.message }, "redis link is down");
  }
}
