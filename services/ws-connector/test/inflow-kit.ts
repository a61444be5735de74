import { afterEach, beforeEach, jest } from "@jest/globals";
import type { Principal } from "window/principal.ts";
import { Inflow, type InflowContext, type InflowOwner } from "../src/inflow.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";
import { Turns } from "../src/turns.ts";

export const SLOW_DOWN = "slow down";

/** A connection of which only the inflow is real. */
export class Owner implements InflowOwner {
  readonly addressCounts = {};
  isClosing = false;
  readonly taken: string[] = [];
  readonly pausedFor = new Set<string>();
  readonly limits: string[] = [];
  /** Whose limits they were, where they were no connection's. */
  readonly whose: string[] = [];
  readonly sent: string[] = [];
  readonly inflow: Inflow;
  /** Frames and chunks that are not read yet. */
  readonly #unread: (() => unknown)[] = [];
  /** True from a pause on until it ends, or a chunk is to be looked at all the same. */
  #isStopped = false;

  constructor(context: InflowContext, principal?: Principal) {
    this.inflow = new Inflow(this, context);
    if (principal !== undefined) this.inflow.registered([principal]);
  }

  /** A chunk comes in; it, and what is in it, is looked at as far as nothing pauses the connection, and then when nothing does. */
  receive(bytes: number, ...frames: readonly (() => void)[]): void {
    const admitted = () => {
      const isAdmitted = this.inflow.admits(bytes);
      if (isAdmitted) this.#isStopped = false;
      return isAdmitted;
    };
    const ended = () => {
      this.#isStopped = this.pausedFor.size > 0;
    };
    this.#unread.push(admitted, ...frames, ended);
    this.#read();
  }

  #read(): void {
    while (!this.#isStopped && !this.isClosing) {
      const next = this.#unread.shift();
      if (next === undefined) return;
      if (next() === false) this.#unread.unshift(next);
    }
  }

  takeIn(text: string): void {
    this.taken.push(text);
  }
  pause(reason: string): void {
    this.pausedFor.add(reason);
    this.#isStopped = true;
  }
  resume(reason: string): void {
    this.pausedFor.delete(reason);
    this.#isStopped = this.pausedFor.size > 0;
    process.nextTick(() => this.#read());
  }
  send(text: string): void {
    this.sent.push(text);
  }
  limitReached(limit: string, principal?: string): void {
    this.limits.push(limit);
    if (principal !== undefined) this.whose.push(principal);
  }
  closeFor(limit: string): void {
    this.limits.push(limit);
    this.isClosing = true;
    this.inflow.stop();
  }
}

/** Ten envelopes a second and 20 at once, 1000 bytes and 2000; of a key 20 and 40, 2000 bytes and as many at once. */
export const contextOf = (changes: Partial<InflowContext> = {}): InflowContext => ({
  envelopes: new TokenBuckets(10, 20),
  bytes: new TokenBuckets(1000, 2000),
  principals: new PrincipalRates(20, 40),
  principalBytes: new PrincipalRates(2000, 2000),
  turns: new Turns(),
  slowDownNotice: SLOW_DOWN,
  ...changes,
});
export const numbers = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);
export const send = (owner: Owner, texts: readonly string[]) => {
  owner.receive(0, ...texts.map((text) => () => owner.inflow.text(text)));
};

/** Time goes by as tests say. */
export function useInflowTime(): void {
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_790_000_000_000 });
    jest.advanceTimersByTime(100_000);
  });
  afterEach(() => {
    jest.useRealTimers();
  });
}
