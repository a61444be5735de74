export interface PeriodicTask {
  readonly everyMs: number;
  readonly run: () => void;
}

/** Runs each task at its interval, from `start` to `stop`. */
export class PeriodicTasks {
  readonly #tasks: readonly PeriodicTask[];
  #timers: readonly NodeJS.Timeout[] = [];

  constructor(tasks: readonly PeriodicTask[]) {
    this.#tasks = tasks;
  }

  start(): void {
    this.#timers = this.#tasks.map(({ everyMs, run }) => setInterval(run, everyMs));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}
