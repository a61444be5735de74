import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LimitName } from "../metrics/catalogue.ts";
import { AddressHash } from "./address-hash.ts";
import type { ConnectionBounds } from "./connection-bounds.ts";

/** Every answer is due within a second: one that takes longer waits for its client. */
const OVERDUE_MS = 2000;

interface PlainConnection {
  readonly socket: Socket;
  /** Hash of the client's address. */
  readonly address: string;
  /** The latest answer on it; null before its first request. */
  answer: ServerResponse | null;
  /** Requests that wait for the answers before theirs. */
  waiting: number;
  /** Monotonic ms of its start, or of its latest request. */
  usedAt: number;
}

/**
 * The plain connections of a server. At a bound the one that has been idle longest gives way, else the one whose answer
 * has been overdue longest; a newcomer is refused only while every answer is still due. Source: docs/security.md#limits.
 */
export class PlainConnections {
  readonly #max: number;
  readonly #maxOfAddress: number;
  readonly #limitReached: (limit: LimitName) => void;
  readonly #addressHash = new AddressHash();
  /** By socket; used longest ago first. */
  readonly #all = new Map<Socket, PlainConnection>();
  /** By address; used longest ago first. */
  readonly #ofAddress = new Map<string, Set<PlainConnection>>();

  /** @param limitReached called whenever a bound closes or refuses a connection. */
  constructor(bounds: ConnectionBounds, limitReached: (limit: LimitName) => void) {
    this.#max = bounds.plain || Number.POSITIVE_INFINITY;
    this.#maxOfAddress = bounds.plainPerAddress || Number.POSITIVE_INFINITY;
    this.#limitReached = limitReached;
  }

  /** False when there is no room for it. */
  add(socket: Socket): boolean {
    const address = this.#addressOf(socket);
    const others = this.#ofAddress.get(address);
    if (others !== undefined && others.size >= this.#maxOfAddress) {
      this.#limitReached("http_address_connections");
      if (!this.#closeOneOf(others)) return false;
    }
    if (this.#all.size >= this.#max) {
      this.#limitReached("http_connections");
      if (!this.#closeOneOf(this.#all.values())) return false;
    }
    this.#append({ socket, address, answer: null, waiting: 0, usedAt: performance.now() });
    return true;
  }

  /**
   * A request came in on it, which begins when the answers before it are gone: a client that sends ahead and reads nothing
   * has one answer made, not one for each request.
   */
  use(socket: Socket, answer: ServerResponse, begin: () => void): void {
    const connection = this.#all.get(socket);
    // Closed since the request was read.
    if (connection === undefined) return;
    const before = connection.answer;
    connection.answer = answer;
    if (before === null || before.closed) {
      this.#begin(connection, begin);
      return;
    }

    connection.waiting += 1;
    if (connection.waiting > HTTP_LIMITS.waitingRequests) {
      this.#limitReached("http_waiting_requests");
      parseNoFurther(socket);
      this.#close(connection);
      return;
    }
    // In turn with other connections: what is answered at once would otherwise keep the event loop until all are.
    before.once("close", () =>
      setImmediate(() => {
        connection.waiting -= 1;
        if (!socket.destroyed) this.#begin(connection, begin);
      }),
    );
  }

  /** Whether a request on it waits for the answers before its own. */
  hasWaiting(socket: Socket): boolean {
    return (this.#all.get(socket)?.waiting ?? 0) > 0;
  }

  /** Whether its client has yet to take the latest answer on it. */
  isAnswering(socket: Socket): boolean {
    return this.answerOn(socket)?.closed === false;
  }

  /** It is closed, or has another owner. */
  remove(socket: Socket): void {
    const connection = this.#all.get(socket);
    if (connection === undefined) return;
    this.#all.delete(socket);
    const ofAddress = this.#ofAddress.get(connection.address);
    ofAddress?.delete(connection);
    if (ofAddress?.size === 0) this.#ofAddress.delete(connection.address);
  }

  /** Closes those whose clients have taken the answers to all that they asked. */
  closeAnswered(): void {
    for (const connection of this.#all.values()) {
      if (connection.answer !== null && isIdle(connection)) this.#close(connection);
    }
  }

  closeAll(): void {
    for (const socket of this.#all.keys()) socket.destroy();
  }

  /** The latest answer on it; null when there is none. */
  answerOn(socket: Socket): ServerResponse | null {
    return this.#all.get(socket)?.answer ?? null;
  }

  /** The latest answer on each. */
  *answers(): Generator<ServerResponse> {
    for (const { answer } of this.#all.values()) if (answer !== null) yield answer;
  }

  /** A request that only waits does not count as use: a client that reads nothing would never be overdue. */
  #begin(connection: PlainConnection, begin: () => void): void {
    this.remove(connection.socket);
    connection.usedAt = performance.now();
    this.#append(connection);
    begin();
  }

  #append(connection: PlainConnection): void {
    const { socket, address } = connection;
    this.#all.set(socket, connection);
    const ofAddress = this.#ofAddress.get(address);
    if (ofAddress === undefined) this.#ofAddress.set(address, new Set([connection]));
    else ofAddress.add(connection);
  }

  #closeOneOf(connections: Iterable<PlainConnection>): boolean {
    const overdueSince = performance.now() - OVERDUE_MS;
    let overdue: PlainConnection | undefined;
    for (const connection of connections) {
      if (isIdle(connection)) return this.#close(connection);
      if (connection.usedAt < overdueSince) overdue ??= connection;
    }
    return overdue !== undefined && this.#close(overdue);
  }

  #close({ socket }: PlainConnection): true {
    this.remove(socket);
    socket.destroy();
    return true;
  }

  /** Without a bound for each address, all share one entry. */
  #addressOf({ remoteAddress = "" }: Socket): string {
    return this.#maxOfAddress === Number.POSITIVE_INFINITY ? "" : this.#addressHash.of(remoteAddress);
  }
}

function isIdle({ answer }: PlainConnection): boolean {
  return answer === null || (answer.writableFinished && answer.req.complete);
}

/**
 * Node parses what it has read of a socket, up to 64 KiB, to its end, also once the socket is destroyed: some thousand requests,
 * and for each an error with its stack that nobody sees. A parser whose callback fails parses no further. Node does not
 * document the parser: a test counts the requests.
 */
function parseNoFurther(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => -1;
}
