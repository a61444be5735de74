/** Runs the tasks of one name one after the other, in order; names do not wait for each other. */
export class Chains {
  /** By name, as long as a task of it is to end. */
  readonly #last = new Map<string, Promise<void>>();

  /** @param task never rejects. */
  add(name: string, task: () => Promise<void>): void {
    const turn = (this.#last.get(name) ?? Promise.resolve()).then(task).then(() => {
      if (this.#last.get(name) === turn) this.#last.delete(name);
    });
    this.#last.set(name, turn);
  }
}
