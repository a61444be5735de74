import { jest } from "@jest/globals";
import { until } from "../../test/support/until.ts";
import { type HttpAnswer, HttpClient } from "../src/http-client.ts";
import { LOOK_UP, MANIFEST } from "../src/limits.ts";

/** How tests move time, and what they have connectors hear over HTTP. What is held stays so until `jest.restoreAllMocks()`. */

/** A wait that no test sits out. */
export const LONG_MS = 1_000_000;

const REAL = { setTimeout, clearTimeout, now: performance.now.bind(performance) };
const timeout = AbortSignal.timeout.bind(AbortSignal);

interface Wait {
  readonly ms: number;
  readonly end: () => void;
  isOver: boolean;
}

/**
 * The waits of `setTimeout` that begin from now on. They end by themselves, or before that when the test says so. One that ended
 * by itself, as on a busy machine, is still there for the test to end.
 */
export class Waits {
  readonly #begun = new Map<unknown, Wait>();

  constructor() {
    const begin = (then: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) => {
      const end = () => {
        if (wait.isOver) return;
        wait.isOver = true;
        REAL.clearTimeout(timer);
        then(...given);
      };
      const wait = { ms, end, isOver: false };
      const timer = REAL.setTimeout(end, ms);
      this.#begun.set(timer, wait);
      return timer;
    };
    const clear = (timer: unknown) => {
      if (!this.#begun.get(timer)?.isOver) this.#begun.delete(timer);
      REAL.clearTimeout(timer as NodeJS.Timeout);
    };
    jest.spyOn(globalThis, "setTimeout").mockImplementation(begin as typeof setTimeout);
    jest.spyOn(globalThis, "clearTimeout").mockImplementation(clear);
  }

  /** Resolves once a wait of `least` to `most` ms has begun. */
  async begun(least: number, most = least): Promise<void> {
    await until(`a wait of ${least} to ${most} ms begins`, () => this.#between(least, most).length > 0);
  }

  /** Ends the waits of just so many ms, once there are as many as this: the connector's random waits may be nearly as long. */
  async end(ms: number, count = 1): Promise<void> {
    await until(`${count} waits of ${ms} ms begin`, () => this.#between(ms, ms).length >= count);
    this.endBetween(ms, ms);
  }

  /** Ends the present waits of `least` to `most` ms. */
  endBetween(least: number, most: number): void {
    for (const [timer, { end }] of this.#between(least, most)) {
      this.#begun.delete(timer);
      end();
    }
  }

  /** Ends the present waits of `LONG_MS`, and of what was left of that a moment later: nothing else waits so long. */
  endLong(): void {
    this.endBetween(LONG_MS * 0.95, LONG_MS);
  }

  #between(least: number, most: number) {
    return [...this.#begun].filter(([, { ms }]) => ms >= least && ms <= most);
  }
}

/** @returns ends the waits of `LONG_MS` that have begun since. */
export function holdWaits(): () => void {
  const waits = new Waits();
  return () => waits.endLong();
}

/**
 * The time of each `AbortSignal.timeout` of `ms`, which is no wait of `setTimeout`, does not pass.
 * @returns ends the present ones.
 */
export function holdSignals(ms: number): () => void {
  const held: AbortController[] = [];
  jest.spyOn(AbortSignal, "timeout").mockImplementation((after) => {
    if (after !== ms) return timeout(after);
    const time = new AbortController();
    held.push(time);
    return time.signal;
  });
  return () => {
    for (const time of held.splice(0)) time.abort();
  };
}

/** What is repeated from now on, by `setInterval`, waits for `jest.advanceTimersByTime`, until `jest.useRealTimers()`. */
export function holdIntervals(): void {
  const clocks = ["Date", "hrtime", "performance"] as const;
  const once = ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "nextTick", "queueMicrotask"] as const;
  jest.useFakeTimers({ doNotFake: [...clocks, ...once] });
}

/**
 * For files without a relay: one that has seen the later time waits, when the test is over, until it comes again.
 * @returns sets the monotonic time of this process forward, which deadlines without a timer are read from.
 */
export function leapingTime(): (ms: number) => void {
  let aheadMs = 0;
  jest.spyOn(performance, "now").mockImplementation(() => REAL.now() + aheadMs);
  return (ms) => {
    aheadMs += ms;
  };
}

/** A time of the product is another one, until `jest.restoreAllMocks()`. */
export function setTime<Name extends string>(times: Readonly<Record<Name, number>>, name: Name, ms: number): void {
  jest.replaceProperty(times as Record<string, number>, name, ms);
}

/** A delivery waits for look-ups as long as they take on a busy machine, until `jest.restoreAllMocks()`. */
export function waitForLookUps(): void {
  for (const times of [LOOK_UP, MANIFEST]) {
    setTime(times, "waitMs", LONG_MS);
    setTime(times.answer, "timeoutMs", LONG_MS);
  }
}

/** What a relay, or something else, answers over HTTP. */
export const said = (body: object | string, status = 200): HttpAnswer => ({
  status,
  headers: {},
  text: typeof body === "string" ? body : JSON.stringify(body),
});

/** Has connectors ask this in place of their relay. @param answer `asked` asks the relay. */
export function answerLookUps(
  answer: (path: string, asked: () => Promise<HttpAnswer>) => HttpAnswer | Promise<HttpAnswer>,
) {
  const { ask } = HttpClient.prototype;
  return jest.spyOn(HttpClient.prototype, "ask").mockImplementation(async function (this: HttpClient, ...given) {
    return await answer(given[0], () => ask.apply(this, given));
  });
}
