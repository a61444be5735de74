import type { Socket } from "node:net";
import { HANDSHAKE_MS } from "./channel.ts";

const MAX_PROVEN = 128;
const MAX_UNPROVEN = 64;

/**
 * The clients of a control socket. Those that have proven to have the key are counted apart from those that have not yet: else
 * whoever connects and says nothing would keep out the agent's own commands.
 */
export class Clients {
  readonly #unproven = new Set<Socket>();
  readonly #proven = new Set<Socket>();

  /** For as long as a handshake takes. The oldest makes room: whoever has the key has long proven it. */
  admit(socket: Socket): void {
    const late = setTimeout(() => this.#unproven.has(socket) && socket.destroy(), HANDSHAKE_MS).unref();
    socket
      .on("error", () => {})
      .once("close", () => {
        clearTimeout(late);
        this.#unproven.delete(socket);
        this.#proven.delete(socket);
      });
    this.#unproven.add(socket);
    if (this.#unproven.size <= MAX_UNPROVEN) return;
    const oldest = this.#unproven.values().next().value;
    oldest?.destroy();
    this.#unproven.delete(oldest as Socket);
  }

  /** @returns whether there is room for it; else it is let go. */
  prove(socket: Socket): boolean {
    this.#unproven.delete(socket);
    if (this.#proven.size >= MAX_PROVEN) socket.destroy();
    if (socket.destroyed) return false;
    this.#proven.add(socket);
    return true;
  }

  destroy(): void {
    for (const socket of [...this.#unproven, ...this.#proven]) socket.destroy();
  }
}
