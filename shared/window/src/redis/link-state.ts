import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { REDIS_LIMITS } from "./limits.ts";
import { isMisconfigured, LinkDownError, linkDown, retryDelayMs } from "./link-down.ts";

/** Whether a link is up, or why it is down: what is logged of it, and the pause before its next attempt, follow from that. */
export class LinkState {
  readonly #link: string;
  readonly #logger: Logger;
  #down: LinkDownError | null = new LinkDownError("refused", "not connected yet");
  /** What was logged last. */
  #reported: RedisDownKind | "up" | undefined;
  /** Connections that closed since the link was last up, or was last up for long. */
  #attempts = 0;
  /** When the link last went up, monotonic ms. */
  #upAt = 0;
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
    this.#upAt = performance.now();
    this.#down = null;
    this.#report();
  }

  goDown(cause: unknown): void {
    const wasUp = this.#down === null;
    const down = linkDown(cause);
    // A silence says nothing of the settings that Redis refused before it.
    if (this.#down !== null && isMisconfigured(this.#down.kind) && down.kind === "timeout") return;
    this.#down = down;
    // A setting that only a call finds wrong, not the set-up, would otherwise have the link come and go without pause.
    const upForMs = performance.now() - this.#upAt;
    const isSettled = upForMs >= REDIS_LIMITS.misconfiguredRetryMaxMs || !isMisconfigured(this.#down.kind);
    if (wasUp && isSettled) this.#attempts = 0;
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

  /**
   * One line a change of state: attempts that fail like the one before are not told again. Who was told that the link is down is
   * told that it is up, too; that it went up at the start is news to nobody.
   */
  #report(): void {
    const state = this.#down?.kind ?? "up";
    if (this.#ended || state === this.#reported) return;
    const upLevel = this.#reported === undefined ? "info" : "warn";
    this.#reported = state;
    if (this.#down === null) this.#logger[upLevel]({ link: this.#link }, "redis link is up");
    else this.#logger.warn({ link: this.#link, kind: state, reason: this.#down.message }, "redis link is down");
  }
}
