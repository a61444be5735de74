import { RelayError } from "./errors.ts";
import type { ConnectorEvents } from "./types.ts";

type Name = keyof ConnectorEvents;
type Listener = (value: never) => unknown;

/** Typed listeners. One that throws, or whose promise rejects, is reported as `error`; the others are still called. */
export class Emitter {
  readonly #listeners = new Map<Name, Set<Listener>>();

  /** @returns a function that removes the listener. */
  on<N extends Name>(name: N, listener: (value: ConnectorEvents[N]) => unknown): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  hasListeners(name: Name): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<N extends Name>(name: N, value: ConnectorEvents[N]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      void this.#call(name, listener as (value: ConnectorEvents[N]) => unknown, value);
    }
  }

  async #call<N extends Name>(name: N, listener: (value: ConnectorEvents[N]) => unknown, value: ConnectorEvents[N]) {
    try {
      await listener(value);
    } catch (cause) {
      if (name !== "error") this.emit("error", new RelayError("listener_failed", { cause }));
    }
  }
}
