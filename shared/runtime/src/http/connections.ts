import { readdirSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Logger } from "../logging.ts";
import type { LimitName } from "../metrics/catalogue.ts";
import { SettingsError } from "../settings.ts";
import { AddressHash } from "./client-address.ts";

/** How many connections a server holds, and for how long. Source: docs/protocol.md#limits. */
export interface ConnectionBounds {
  /** Plain HTTP connections: every connection that is not a websocket, or not yet. 0 = no limit. */
  readonly plain: number;
  /** Plain HTTP connections of one client address; 0 = no limit. */
  readonly plainPerAddress: number;
  /** Websockets, which their owner refuses beyond it. */
  readonly websockets: number;
  /** Ms without a request after which a connection is closed. */
  readonly idleMs: number;
}

/** Settings from which the bounds are made. */
export interface ConnectionSettings {
  readonly httpConnections: number;
  readonly connectionsPerAddress: number;
  readonly trustedProxyHops: number;
  /** Only of a service that takes websockets. */
  readonly maxConnections?: number;
}

/** Longer than the 60 s of proxies, so that the relay never closes a connection on which one sends a request. */
const IDLE_BEHIND_PROXY_MS = 65_000;
const IDLE_MS = 10_000;

/** For a server with few clients, such as the server of the metrics. */
export const FEW_CONNECTIONS: ConnectionBounds = {
  plain: 32,
  plainPerAddress: 0,
  websockets: 0,
  idleMs: IDLE_BEHIND_PROXY_MS,
};

/** Behind a proxy every connection has the proxy's address: the bound by address is the proxy's there. */
export function connectionBounds(settings: ConnectionSettings): ConnectionBounds {
  const { httpConnections, connectionsPerAddress, trustedProxyHops, maxConnections = 0 } = settings;
  const isDirect = trustedProxyHops === 0;
  return {
    plain: httpConnections,
    plainPerAddress: isDirect ? connectionsPerAddress : 0,
    websockets: maxConnections,
    idleMs: isDirect ? IDLE_MS : IDLE_BEHIND_PROXY_MS,
  };
}

/** Descriptors for all that is no client's connection: Redis, the keys file, the metrics. */
const RESERVED = 64;
/** Connections of the admin listener, which has one socket besides. */
export const ADMIN_CONNECTIONS = 512;
/** Connections without which there is nothing to serve. */
const FEWEST = 32;
/** The share of plain HTTP in too few descriptors, for a service that also takes websockets. */
const HTTP_SHARE = 0.25;

type Bounded = Pick<ConnectionSettings, "httpConnections" | "maxConnections">;
type Counted = Bounded & { readonly adminPort?: number | undefined };

/**
 * The settings with no more connections than there are file descriptors for. A process without a descriptor left takes each
 * connection only to close it, and Node tells nobody (EMFILE): it must never come to that.
 * @throws {SettingsError} when there are too few to serve at all.
 */
export function withinOpenFiles<Settings extends Counted>(
  settings: Settings,
  logger: Logger,
  level: "warn" | "info" = "warn",
): Settings {
  const files = openFiles();
  if (files === null) return settings;
  const reserved = files.open + RESERVED + (settings.adminPort === undefined ? 0 : ADMIN_CONNECTIONS + 1);
  const fewest = reserved + FEWEST;
  if (files.limit < fewest) throw new SettingsError([`the limit of open files (ulimit -n) must be at least ${fewest}`]);
  const bounds = fitted(settings, files.limit - reserved);
  if (bounds === null) return settings;
  logger[level](
    { openFiles: files.limit, ...bounds },
    "the limit of open files allows fewer connections than the settings",
  );
  return { ...settings, ...bounds };
}

/** What becomes of the bounds when only so many connections can be had; null when that is enough. */
export function fitted({ httpConnections, maxConnections }: Bounded, available: number): Bounded | null {
  const plain = httpConnections || Number.POSITIVE_INFINITY;
  if (plain + (maxConnections ?? 0) <= available) return null;
  if (maxConnections === undefined) return { httpConnections: available };
  const forHttp = Math.min(plain, Math.max(Math.floor(available * HTTP_SHARE), available - maxConnections));
  return { httpConnections: forHttp, maxConnections: Math.min(maxConnections, available - forHttp) };
}

/** How many descriptors the process may have, and has; null where the system does not say. Node has raised the limit already. */
function openFiles(): { readonly limit: number; readonly open: number } | null {
  try {
    const [, limit] = /^Max open files +([0-9]+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return limit === undefined ? null : { limit: Number(limit), open: readdirSync("/proc/self/fd").length };
  } catch {
    return null;
  }
}

/** Every answer is due within a second. A longer one waits for its client. */
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
 * The plain connections of a server. At a bound, the connection that has been idle longest gives way, else the one
 * whose answer has been overdue longest. A newcomer is refused only while every answer is still due. Source:
 * docs/security.md#limits.
 */
export class PlainConnections {
  readonly #bounds: ConnectionBounds;
  readonly #limitReached: (limit: LimitName) => void;
  readonly #addressHash = new AddressHash();
  /** By socket; used longest ago first. */
  readonly #all = new Map<Socket, PlainConnection>();

  /** @param limitReached called whenever a bound closes or refuses a connection. */
  constructor(bounds: ConnectionBounds, limitReached: (limit: LimitName) => void) {
    this.#bounds = bounds;
    this.#limitReached = limitReached;
  }

  /** False when there is no room for it. */
  add(socket: Socket): boolean {
    const { plain, plainPerAddress } = this.#bounds;
    const address = plainPerAddress === 0 ? "" : this.#addressHash.of(socket.remoteAddress ?? "");
    if (plainPerAddress > 0) {
      const ofAddress = [...this.all()].filter((other) => other.address === address);
      const isFull = ofAddress.length >= plainPerAddress;
      if (isFull && !this.#closeOneOf(ofAddress, "http_address_connections")) return false;
    }
    const isFull = plain > 0 && this.#all.size >= plain;
    if (isFull && !this.#closeOneOf(this.all(), "http_connections")) return false;
    this.#all.set(socket, { socket, address, answer: null, waiting: 0, usedAt: performance.now() });
    return true;
  }

  /**
   * Takes a request of a connection. It begins when the answers before it are gone: a client that sends ahead and reads
   * nothing costs one answer, not one for each request.
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
    before.once("close", () => {
      connection.waiting -= 1;
      if (!socket.destroyed) this.#begin(connection, begin);
    });
  }

  get(socket: Socket): Readonly<PlainConnection> | undefined {
    return this.#all.get(socket);
  }

  all(): Iterable<Readonly<PlainConnection>> {
    return this.#all.values();
  }

  /** It is closed, or has another owner. */
  remove(socket: Socket): void {
    this.#all.delete(socket);
  }

  /** A request that only waits does not count as use: a client that reads nothing would never be overdue. */
  #begin(connection: PlainConnection, begin: () => void): void {
    this.#all.delete(connection.socket);
    connection.usedAt = performance.now();
    this.#all.set(connection.socket, connection);
    begin();
  }

  #closeOneOf(connections: Iterable<PlainConnection>, limit: LimitName): boolean {
    this.#limitReached(limit);
    const overdueSince = performance.now() - OVERDUE_MS;
    let overdue: PlainConnection | undefined;
    for (const connection of connections) {
      if (isIdle(connection)) return this.#close(connection);
      if (connection.usedAt < overdueSince) overdue ??= connection;
    }
    return overdue !== undefined && this.#close(overdue);
  }

  #close({ socket }: PlainConnection): true {
    this.#all.delete(socket);
    socket.destroy();
    return true;
  }
}

/** Whether its client has asked nothing, or has taken the answers to all that it asked. */
export function isIdle({ answer }: Pick<PlainConnection, "answer">): boolean {
  return answer === null || (answer.writableFinished && answer.req.complete);
}

/**
 * Node parses all that it has read of a socket, up to 64 KiB, even after the socket is destroyed. These are some
 * thousand requests, each with an error and a stack that nobody sees: 28 ms instead of half a millisecond. A parser
 * whose callback fails parses no further. Node does not document the parser: a test counts the requests.
 */
function parseNoFurther(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => -1;
}
