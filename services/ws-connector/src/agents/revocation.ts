import type { KeyStore } from "relay-runtime/key-store.ts";
import type { Connection } from "../connection/connection.ts";
import type { Registrar } from "./registrar.ts";

/**
 * Releases the agents whose keys and credentials no longer allow them. This happens when the keys file changes, also if
 * it has another key under the same id. It also happens when a key or credential ends, without a change of the file.
 * Source: docs/protocol.md#keys.
 */
export class Revocation {
  readonly #keys: KeyStore;
  readonly #connections: Iterable<Connection>;
  readonly #registrar: Registrar;
  /** Unix ms. */
  #checkedAt = 0;

  constructor(options: { keys: KeyStore; connections: Iterable<Connection>; registrar: Registrar }) {
    this.#keys = options.keys;
    this.#connections = options.connections;
    this.#registrar = options.registrar;
  }

  /** Follows the keys file until the key store stops. */
  start(): void {
    this.#keys.onChange(() => this.#releaseRevoked());
    this.#checkedAt = Date.now();
  }

  /** Releases agents whose keys or credentials have ended since the last check. */
  checkExpiry(): void {
    const now = Date.now();
    const { ring } = this.#keys;
    if (ring.nextTransition(this.#checkedAt) <= now) this.#releaseRevoked();
    this.#releaseEnded(now);
    this.#checkedAt = now;
  }

  #releaseRevoked(): void {
    for (const connection of this.#connections) this.#registrar.releaseRevoked(connection);
  }

  #releaseEnded(now: number): void {
    for (const connection of this.#connections) {
      if ((connection.credentials?.nextEnd ?? Number.POSITIVE_INFINITY) > now) continue;
      this.#registrar.releaseRevoked(connection);
      connection.credentials?.forgetEnded(now);
    }
  }
}
