import type { Socket } from "node:net";

/**
 * The sockets whose TLS handshake is under way. Node does not say which of them one that has ended was of; their two addresses and
 * ports do, and are forgotten then.
 */
export class Handshakes {
  readonly #sockets = new Map<string, { readonly socket: Socket; readonly closed: () => void }>();

  begun(socket: Socket): void {
    const ends = endsOf(socket);
    const closed = () => {
      if (this.#sockets.get(ends)?.socket === socket) this.#sockets.delete(ends);
    };
    this.#sockets.set(ends, { socket, closed });
    socket.once("close", closed);
  }

  /** @param secured what the handshake led to. @returns the socket below it. */
  ended(secured: Socket): Socket | undefined {
    const ends = endsOf(secured);
    const begun = this.#sockets.get(ends);
    if (begun === undefined) return undefined;
    this.#sockets.delete(ends);
    begun.socket.off("close", begun.closed);
    return begun.socket;
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
