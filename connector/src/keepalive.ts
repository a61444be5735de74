import { ANSWER_WITHIN_MS } from "./limits.ts";

/**
 * How often the timers are compared, at most; and by how much the two clocks may drift apart before it counts as a
 * jump.
 */
const TICK_MS = 1000;
const JUMP_MS = 3000;

export interface KeepaliveOptions {
  readonly intervalMs: number;
  /** A heartbeat is due. */
  readonly sendHeartbeat: () => void;
  /** The connection is dead: nothing comes in after a request, or no answer for two intervals after a heartbeat. */
  readonly timedOut: () => void;
}

/**
 * Asks for heartbeats in time, and notices a connection that died without a close. After a sleep of the machine, or any
 * other jump of its clock, it asks for one at once: the connection may be long gone, and what came in meanwhile is not
 * read yet.
 */
export class Keepalive {
  readonly #options: KeepaliveOptions;
  readonly #tickMs: number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #tickedAt = 0;
  #heartbeatAt = 0;
  /**
   * Ticks since a request that has no answer. A process that stood still ticks once, and then reads what came in: by the
   * time alone it would give up an answer that is there.
   */
  #ticksWaited: number | undefined;
  /** The same since a heartbeat. Deliveries and notices do not show that anything goes out; answers do. */
  #heartbeatTicks: number | undefined;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
    this.#tickMs = Math.min(TICK_MS, options.intervalMs / 4);
  }

  start(): void {
    this.#tickedAt = Date.now();
    this.#heartbeatAt = performance.now();
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Something was sent that the relay answers. */
  requestSent(): void {
    this.#ticksWaited ??= 0;
  }

  /** A register or heartbeat was sent. */
  heartbeatSent(): void {
    this.#heartbeatTicks ??= 0;
  }

  /** Anything that was sent was answered: a heartbeat may wait for long behind what its key sends. */
  answered(): void {
    this.#heartbeatTicks = undefined;
  }

  /** Any frame came in. */
  frameReceived(): void {
    this.#ticksWaited = undefined;
  }

  heartbeatNow(): void {
    this.#heartbeatAt = performance.now();
    this.#options.sendHeartbeat();
  }

  #tick(): void {
    const { intervalMs, timedOut } = this.#options;
    if (this.#ticksWaited !== undefined) this.#ticksWaited += 1;
    if (this.#heartbeatTicks !== undefined) this.#heartbeatTicks += 1;
    const hasJumped = Math.abs(Date.now() - this.#tickedAt - this.#tickMs) > JUMP_MS;
    this.#tickedAt = Date.now();
    if (hasJumped) {
      this.#ticksWaited = undefined;
      this.#heartbeatTicks = undefined;
      this.heartbeatNow();
    } else if (this.#isDead()) {
      timedOut();
    } else if (performance.now() - this.#heartbeatAt >= intervalMs - this.#tickMs) {
      this.heartbeatNow();
    }
  }

  #isDead(): boolean {
    const { intervalMs } = this.#options;
    const lasts = (ticks = 0) => ticks * this.#tickMs;
    return (
      lasts(this.#ticksWaited) > Math.min(ANSWER_WITHIN_MS, intervalMs) || lasts(this.#heartbeatTicks) > 2 * intervalMs
    );
  }
}
