import type { Logger } from "relay-runtime/logging.ts";
import { REDIS_LIMITS } from "./limits.ts";

/** What is told of the memory of Redis, from one reading to the next. */
type State = "ample" | "short" | "full";

/**
 * How full Redis is, as a link reads it each second. While it is short of memory the relay refuses what needs new room,
 * so that what goes on keeps its own. Source: docs/operations.md#memory.
 */
export class RedisMemory {
  readonly #logger: Logger;
  #ratio = 0;
  #state: State = "ample";

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Used memory as a share of maxmemory; 0 where Redis has no limit. */
  get ratio(): number {
    return this.#ratio;
  }

  /** Two bounds keep the state from changing with each reading. */
  get isShort(): boolean {
    return this.#state !== "ample";
  }

  /** @param info INFO, or its section memory. */
  update(info: string): void {
    this.#ratio = ratioOf(info);
    if (!this.isShort && this.#ratio > REDIS_LIMITS.memoryShortAbove) this.#change("short");
    else if (this.isShort && this.#ratio < REDIS_LIMITS.memoryAmpleBelow) this.#change("ample");
  }

  /** Redis refused a write for want of memory. */
  filled(): void {
    if (this.#state !== "full") this.#change("full");
  }

  /** One line a change: what is refused meanwhile is counted, not logged. */
  #change(state: State): void {
    this.#state = state;
    if (state === "ample") this.#logger.info({ ratio: this.#ratio }, "redis has memory again");
    else this.#logger.warn({ ratio: this.#ratio }, state === "full" ? "redis is full" : "redis is short of memory");
  }
}

function ratioOf(info: string): number {
  const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  const most = bytes("maxmemory");
  return most === 0 ? 0 : bytes("used_memory") / most;
}
