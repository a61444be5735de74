import { RelayError } from "./errors.ts";
import type { ConnectorEvents, Warning } from "./types.ts";

type Name = keyof ConnectorEvents;
type Listener = (value: never) => unknown;

/** Others can cause what is reported: no more texts than these are remembered, and further ones are not printed. */
const MAX_LOGGED = 100;

/**
 * Typed listeners. One that throws, or whose promise rejects, is reported as `error`; the others are still called. Errors and
 * warnings that nobody listens to go to the console: a failure that nobody sees looks like a relay that does not answer.
 */
export class Emitter {
  readonly #listeners = new Map<Name, Set<Listener>>();
  /** Texts that the console has, since the agent was last registered: strangers can cause some as often as they like. */
  readonly #logged = new Set<string>();

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
    if ((name === "error" || name === "warning") && !this.hasListeners(name)) this.#log(value as RelayError | Warning);
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      void this.#call(name, listener as (value: ConnectorEvents[N]) => unknown, value);
    }
  }

  /** The agent is registered: what fails from now on is another failure. */
  logAnew(): void {
    this.#logged.clear();
  }

  async #call<N extends Name>(name: N, listener: (value: ConnectorEvents[N]) => unknown, value: ConnectorEvents[N]) {
    try {
      await listener(value);
    } catch (cause) {
      const failure = new RelayError("listener_failed", { cause });
      if (name === "error") this.#log(failure);
      else this.emit("error", failure);
    }
  }

  /** Of a listener of the application also what it threw, each time; nothing else says what another one sent. */
  #log(value: RelayError | Warning): void {
    const { code, message, hint } = value;
    const threw = code === "listener_failed" ? [(value as RelayError).cause] : [];
    if (threw.length === 0 && (this.#logged.has(message) || this.#logged.size === MAX_LOGGED)) return;
    if (threw.length === 0) this.#logged.add(message);
    // biome-ignore lint/suspicious/noConsole: where the application listens to nothing, there is no other place.
    console.error(`agent-relay-connector: ${code}: ${message} ${hint}`, ...threw);
  }
}
