const TICK_MS = 20;

/** Does things at steady rates, however long each of them takes, until it is stopped. */
export class Pace {
  readonly #timers: NodeJS.Timeout[] = [];

  every(perSecond: number, act: () => void): void {
    let done = 0;
    const startedAt = performance.now();
    const catchUp = () => {
      const due = ((performance.now() - startedAt) / 1000) * perSecond;
      for (; done < due; done += 1) act();
    };
    this.#timers.push(setInterval(catchUp, TICK_MS));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}

/** One of a list by chance; undefined when it is empty. */
export function anyOf<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)];
}
