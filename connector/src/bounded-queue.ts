import { oldestOfMost } from "./oldest-of-most.ts";

/**
 * A bounded queue with asynchronous readers. A websocket cannot be paused, so the oldest item of the sender with the most is dropped
 * when it is full.
 */
export class BoundedQueue<T> {
  readonly #max: number;
  readonly #senderOf: (item: T) => string;
  readonly #items: T[] = [];
  readonly #readers: PromiseWithResolvers<T | undefined>[] = [];
  #end: { readonly error: Error | undefined } | undefined;

  constructor(max: number, senderOf: (item: T) => string) {
    this.#max = max;
    this.#senderOf = senderOf;
  }

  /** @returns false when an item was dropped for it. */
  push(item: T): boolean {
    if (this.#end !== undefined) return true;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader.resolve(item);
      return true;
    }
    this.#items.push(item);
    if (this.#items.length <= this.#max) return true;
    this.#items.splice(oldestOfMost(this.#items, this.#senderOf), 1);
    return false;
  }

  /** The next item, when there is one. After the end: what is left, then undefined, or the error that ended it. */
  async take(): Promise<T | undefined> {
    if (this.#items.length > 0) return this.#items.shift();
    if (this.#end?.error !== undefined) throw this.#end.error;
    if (this.#end !== undefined) return undefined;
    const reader = Promise.withResolvers<T | undefined>();
    this.#readers.push(reader);
    return await reader.promise;
  }

  end(error?: Error): void {
    this.#end ??= { error };
    for (const reader of this.#readers.splice(0)) {
      if (error === undefined) reader.resolve(undefined);
      else reader.reject(error);
    }
  }
}
