import { REDIS_LIMITS } from "./limits.ts";

/**
 * What a service does when Redis is usable again, where several primaries come and go: all of it runs after each that came
 * back, once at a time, and again after a pause while some of it fails.
 */
export class UsableListeners {
  readonly #listeners: (() => Promise<void>)[] = [];
  readonly #done: () => void;
  #isRunning = false;
  #isDue = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param done called when all of it was done and nothing came back meanwhile. */
  constructor(done: () => void) {
    this.#done = done;
  }

  add(listener: () => Promise<void>): void {
    this.#listeners.push(listener);
  }

  async run(): Promise<void> {
    this.#isDue = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#isDue) {
      this.#isDue = false;
      const ends = await Promise.allSettled(this.#listeners.map(async (listener) => await listener()));
      if (ends.some(({ status }) => status === "rejected")) this.#runLater();
      else if (!this.#isDue) this.#done();
    }
    this.#isRunning = false;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #runLater(): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    const pauseMs = REDIS_LIMITS.missingSlotsMs * (0.5 + Math.random());
    this.#timer = setTimeout(() => void this.run(), pauseMs);
  }
}
