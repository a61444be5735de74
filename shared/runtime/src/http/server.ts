import http from "node:http";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { type Service, StartError } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import type { LimitName } from "../metrics/catalogue.ts";
import type { Certificate, Pair } from "./certificate.ts";
import { clientAddress, networkOf } from "./client-address.ts";
import { type ConnectionBounds, FEW_CONNECTIONS, isIdle, PlainConnections } from "./connections.ts";
import { problemOf, rawProblem } from "./problem.ts";
import { RequestQueue } from "./request-queue.ts";

/** Takes over the socket, or ends it with a refusal. */
export type TakeUpgrade = (req: http.IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface HttpServerOptions {
  /** Koa's callback, or a dispatcher over several; sees targets in origin-form only. */
  readonly handler: http.RequestListener;
  readonly host: string;
  readonly port: number;
  /** Takes over the sockets of websocket upgrades; without it they are answered as plain requests. */
  readonly upgrade?: TakeUpgrade;
  /** By default the bounds of a server with few clients. */
  readonly bounds?: ConnectionBounds;
  /** Makes it a server of HTTPS; read at its start, followed until its stop. */
  readonly certificate?: Certificate | undefined;
  /** How many X-Forwarded-For entries are trusted, from the right; by default none. */
  readonly trustedProxyHops?: number;
  /** Called whenever a bound closes or refuses a connection. */
  readonly limitReached?: (limit: LimitName) => void;
  readonly logger: Logger;
}

/**
 * What one connection may take, in ms and bytes: a client that sends its header or body slowly, or nothing at all, is
 * disconnected (slowloris). Its own rules ask for the Host field, since Node's answer has no problem document.
 */
const CONNECTION_OPTIONS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16_384,
  requireHostHeader: false,
} as const;
/** A client that does not end its handshake in time is disconnected. Source: RFC 9325, section 3.1. */
const TLS_OPTIONS = { minVersion: "TLSv1.2", handshakeTimeout: 5000 } as const;
const MAX_HEADERS = 100;
const MAX_REQUESTS_PER_SOCKET = 1000;
/**
 * Connections that the kernel holds until they are accepted. It drops further ones, and their clients try again a
 * second later. With a far larger backlog, a flood is accepted at once while a request waits (measured:
 * docs/security.md#abuse).
 */
const BACKLOG = 1024;
/** A client that does not read its answer is disconnected after two of these periods without a byte of progress. */
const UNREAD_TIMEOUT_MS = 5000;
/** A client that does not read the refusal of its upgrade or CONNECT is disconnected after this. */
const REFUSAL_MS = 5000;
/** Every answer is due within a second; connections that are still open after this are closed. */
const STOP_GRACE_MS = 1500;
const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EADDRNOTAVAIL: "this machine does not have the address",
  EACCES: "this user may not open the port",
  ENOTFOUND: "the host name is unknown",
};
/** A bound that is reached all the time is logged once in this time. */
const LIMIT_LOG_MS = 60_000;

/** An HTTP server on one port. It does not close the websockets that it handed over: stop their owner first. */
export class HttpServer implements Service {
  readonly #options: HttpServerOptions;
  readonly #server: http.Server;
  /**
   * The open sockets with the latest answer on each, without sockets that were handed over. Node does not say which
   * answers are open. A stop needs that to announce the close in their headers, and a broken socket to know whether it
   * was answered.
   */
  readonly #connections: PlainConnections;
  readonly #queue = new RequestQueue();
  /** Listener for the close of any socket; its `this` is the socket. */
  readonly #forget: (this: Socket) => void;
  #started: Promise<void> | null = null;
  #stopped: Promise<void> | null = null;
  /** Monotonic ms. */
  #limitLoggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const { bounds = FEW_CONNECTIONS } = options;
    const connections = new PlainConnections(bounds, (limit) => this.#limitReached(limit));
    this.#connections = connections;
    this.#forget = function () {
      connections.remove(this);
    };
    const serverOptions: http.ServerOptions = {
      ...CONNECTION_OPTIONS,
      keepAliveTimeout: bounds.idleMs,
      shouldUpgradeCallback: (req) => options.upgrade !== undefined && isWebsocket(req),
    };
    const isTls = options.certificate !== undefined;
    this.#server = isTls ? https.createServer({ ...serverOptions, ...TLS_OPTIONS }) : http.createServer(serverOptions);
    // A client may end its side behind its request, as `printf … | nc` does. Node would end the other side before the answer.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    // Node would also close, as idle at a stop, a client that has yet to read an answer that was ended.
    this.#server.closeIdleConnections = () => this.#closeAnswered();
    this.#server.maxHeadersCount = MAX_HEADERS;
    this.#server.maxRequestsPerSocket = MAX_REQUESTS_PER_SOCKET;
    this.#server.timeout = UNREAD_TIMEOUT_MS;
    // Websockets count here too. One more, because a newcomer arrives before the connection that gives way is gone.
    if (bounds.plain > 0) this.#server.maxConnections = bounds.plain + bounds.websockets + 1;
    this.#server.on("drop", () => this.#limitReached("http_connections"));
    this.#server.on("connection", (socket: Socket) => this.#accept(socket));
    this.#server.on("secureConnection", (socket: Socket) => this.#secured(socket));
    // A handshake that failed: there is nobody to tell.
    this.#server.on("tlsClientError", (_, socket: Socket) => socket.destroy());
    this.#server.on("request", (req, res) => this.#answer(req, res));
    this.#server.on("checkExpectation", (req, res) => this.#answer(req, res, new ServiceError("expectation_failed")));
    this.#server.on("upgrade", (req, socket: Socket, head) => {
      this.#detach(socket, () => this.#upgrade(req, socket, head));
    });
    this.#server.on("connect", (_, socket: Socket) => {
      this.#detach(socket, () => refuseSocket(socket, new ServiceError("not_found")));
    });
    this.#server.on("clientError", (error, socket) => this.#refuse(error, socket as Socket));
  }

  /** Port that the server listens on. It differs from the setting only if that is 0. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  start(): Promise<void> {
    this.#started ??= this.#listen();
    return this.#started;
  }

  async #listen(): Promise<void> {
    const { host, port, logger, certificate } = this.#options;
    const server = this.#server as https.Server;
    const show = (pair: Pair) => server.setSecureContext({ ...pair, minVersion: TLS_OPTIONS.minVersion });
    if (certificate !== undefined) show(await certificate.start(show));
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", (err) => reject(portRefusal(err, { host, port })));
      this.#server.listen({ port, host, backlog: BACKLOG }, () => {
        this.#server.removeAllListeners("error");
        resolve();
      });
    });
    this.#server.on("error", (err) => logger.error({ err }, "http server failed"));
    logger.info({ host, port: this.port }, "listening");
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    // A port that is about to be taken can be left only once it is; a start that fails says so to its caller.
    if (!this.#server.listening) await this.#started?.catch(() => {});
    this.#options.certificate?.stop();
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { socket, answer } of this.#connections.all()) {
      if (answer?.headersSent) answer.once("close", () => socket.destroySoon());
      else answer?.setHeader("Connection", "close");
    }
    const deadline = setTimeout(() => {
      for (const { socket } of this.#connections.all()) socket.destroy();
    }, STOP_GRACE_MS);
    await closed;
    clearTimeout(deadline);
  }

  /** Closes those whose clients have taken the answers to all that they asked. */
  #closeAnswered(): void {
    for (const connection of this.#connections.all()) {
      if (connection.answer !== null && isIdle(connection)) connection.socket.destroy();
    }
  }

  /** One whose handshake is under way counts as one without a request: the same bounds hold, and a stop closes it. */
  #accept(socket: Socket): void {
    this.#queue.accepted();
    this.#track(socket);
  }

  #secured(socket: Socket): void {
    // Node does not document it: tests look for the bound and for the address.
    const below = (socket as { _parent?: Socket })._parent;
    if (below !== undefined) {
      this.#untrack(below);
      detachFromHttp(below);
    }
    this.#track(socket);
  }

  #track(socket: Socket): void {
    // Node removes its own error listener at an upgrade: without this one, a reset would end the process.
    socket.on("error", ignore);
    if (this.#connections.add(socket)) socket.on("close", this.#forget);
    else socket.destroy();
  }

  /**
   * A client asks to leave HTTP: from here on Node neither times its socket out nor closes it. The socket is taken
   * over, or refused within a deadline. If an earlier answer is still open, the socket is closed: the refusal would
   * wait for its client.
   */
  #detach(socket: Socket, take: () => void): void {
    if (this.#connections.get(socket)?.answer?.closed === false) {
      socket.destroy();
      return;
    }
    take();
    if (!socket.writableEnded) {
      this.#untrack(socket);
      detachFromHttp(socket);
      return;
    }
    const deadline = setTimeout(() => socket.destroy(), REFUSAL_MS);
    socket.once("close", () => clearTimeout(deadline));
  }

  /** The socket has a new owner. A pod has tens of thousands of them, so nothing of this server's stays attached. */
  #untrack(socket: Socket): void {
    this.#connections.remove(socket);
    socket.off("close", this.#forget);
    if (socket.listenerCount("error") > 1) socket.off("error", ignore);
  }

  #answer(req: http.IncomingMessage, res: http.ServerResponse, refusal?: ServiceError): void {
    const begin = () => {
      const refused = refusal ?? refusalOfRequest(req);
      // At once: it costs no more than a turn, and a client that has ended its side by then would get no answer.
      if (refused !== null) {
        sendProblem(res, refused);
        return;
      }
      const network = networkOf(clientAddress(req, this.#options.trustedProxyHops ?? 0));
      this.#queue.join(network, () => {
        if (!req.socket.destroyed) this.#options.handler(req, res);
      });
    };
    this.#connections.use(req.socket, res, begin);
  }

  #upgrade(req: http.IncomingMessage, socket: Socket, head: Buffer): void {
    const refusal = refusalOfRequest(req);
    if (refusal === null) this.#options.upgrade?.(req, socket, head);
    else refuseSocket(socket, refusal);
  }

  #limitReached(limit: LimitName): void {
    this.#options.limitReached?.(limit);
    if (performance.now() - this.#limitLoggedAt < LIMIT_LOG_MS) return;
    this.#limitLoggedAt = performance.now();
    this.#options.logger.warn({ limit }, "a bound of connections is reached");
  }

  /** A request that is not valid HTTP gets a last answer, unless it has its answer already or another one is being sent. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const { answer = null, waiting = 0 } = this.#connections.get(socket) ?? {};
    const isAnswered = answer?.headersSent === true && !isIdle({ answer });
    if (error.code === "ECONNRESET" || !socket.writable || isAnswered || waiting > 0) {
      socket.destroy();
      return;
    }
    refuseSocket(
      socket,
      new ServiceError("invalid_request", { detail: "The request is not valid HTTP or was sent too slowly." }),
    );
  }
}

function ignore(): void {}

/** Says why an address cannot be listened on. Any other error stays as it is. */
function portRefusal(err: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): Error {
  const reason = LISTEN_FAULTS[err.code ?? ""];
  return reason === undefined ? err : new StartError(`Cannot listen on port ${port} of ${host}: ${reason}.`, err);
}

function isWebsocket(req: http.IncomingMessage): boolean {
  return req.headers.upgrade?.toLowerCase() === "websocket";
}

function sendProblem(res: http.ServerResponse, error: ServiceError): void {
  const { status, headers, body } = problemOf(error);
  const text = JSON.stringify(body);
  res.writeHead(status, { ...headers, "Content-Length": Buffer.byteLength(text), Connection: "close" }).end(text);
}

function refuseSocket(socket: Socket, error: ServiceError): void {
  socket.write(rawProblem(error));
  socket.destroySoon();
}

/** Source: RFC 3986, section 3.2.2. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::[0-9]*)?$/;

/** Why a request is refused whatever it asks for, or null: then its target is in origin-form. */
function refusalOfRequest(req: http.IncomingMessage): ServiceError | null {
  if (!hasOneHost(req)) return new ServiceError("invalid_request", { detail: "One valid Host field is required." });
  const target = originForm(req.url ?? "");
  if (target === null) return new ServiceError("not_found");
  req.url = target;
  return null;
}

/**
 * With two of them, a proxy may have gone by the other one. An upgrade needs one whatever its version.
 * Source: RFC 9112, section 3.2; RFC 6455, section 4.2.1.
 */
function hasOneHost({ rawHeaders, headers, httpVersion }: http.IncomingMessage): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") count += 1;
  }
  if (count === 0) return httpVersion === "1.0" && headers.upgrade === undefined;
  return count === 1 && HOST.test(headers.host ?? "");
}

/**
 * Reads a request target as path and query: `/health?x=1`. Null for what no surface can answer: `*`, an authority, a
 * fragment, a backslash, raw white space or non-ASCII. Dot segments, double slashes and escapes are left as they are: if one
 * of edge, dispatcher and router resolved them, the others would check another path than the one that is answered.
 * The absolute form is accepted and its authority ignored. Source: RFC 9112, section 3.2.
 */
function originForm(target: string): string | null {
  const path = target.replace(/^https?:\/\/[^/?#\\]+/i, "");
  const rooted = path === "" || path.startsWith("?") ? `/${path}` : path;
  return /^\/[\x21\x22\x24-\x5b\x5d-\x7e]*$/.test(rooted) ? rooted : null;
}

/**
 * Frees what Node keeps on a socket after its server has handed it over: the timer of its timeout, which never starts
 * again, and the address of its client, which nobody may keep. These are 300 bytes for each of tens of thousands of
 * websockets. Node documents neither: a test looks for both.
 */
function detachFromHttp(socket: Socket): void {
  socket.setTimeout(0);
  const timer = Object.getOwnPropertySymbols(socket).find(({ description }) => description === "timeout");
  const remains = socket as unknown as Record<symbol | string, unknown>;
  if (timer !== undefined) remains[timer] = null;
  if (remains._peername !== undefined) remains._peername = undefined;
}
