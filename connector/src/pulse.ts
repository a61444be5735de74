import { ANSWER_WITHIN_MS } from "./limits.ts";

/** How often it looks at the clocks, at most; and how much one of them may run ahead of the other unnoticed. */
const TICK_MS = 1000;
const JUMP_MS = 3000;

export interface PulseOptions {
  readonly intervalMs: number;
  /** Time for a heartbeat. */
  readonly beat: () => void;
  /** The connection is dead: what was asked long ago was not answered, nor did anything else come. */
  readonly lost: () => void;
}

/**
 * Beats in time, and notices a connection that died in silence. After a sleep of the machine, or any other jump of its
 * clock, it beats at once: the connection may be long gone, and what came in meanwhile is not read yet.
 */
export class Pulse {
  readonly #options: PulseOptions;
  readonly #tickMs: number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #tickedAt = 0;
  #beatAt = 0;
  #askedAt: number | undefined;

  constructor(options: PulseOptions) {
    this.#options = options;
    this.#tickMs = Math.min(TICK_MS, options.intervalMs / 4);
  }

  start(): void {
    this.#tickedAt = Date.now();
    this.#beatAt = performance.now();
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Something was sent that the relay answers. */
  asked(): void {
    this.#askedAt ??= performance.now();
  }

  /** Something came in, whatever it was. */
  heard(): void {
    this.#askedAt = undefined;
  }

  /** Beats now. */
  beat(): void {
    this.#beatAt = performance.now();
    this.#options.beat();
  }

  #tick(): void {
    const { intervalMs, lost } = this.#options;
    const jumped = Math.abs(Date.now() - this.#tickedAt - this.#tickMs) > JUMP_MS;
    this.#tickedAt = Date.now();
    const now = performance.now();
    if (jumped) {
      this.#askedAt = undefined;
      this.beat();
    } else if (this.#askedAt !== undefined && now - this.#askedAt > Math.min(ANSWER_WITHIN_MS, intervalMs)) {
      lost();
    } else if (now - this.#beatAt >= intervalMs - this.#tickMs) {
      this.beat();
    }
  }
}
