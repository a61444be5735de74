import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ServiceError } from "protocol/contract/errors.ts";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import { problemOf, rawProblem } from "./problem.ts";
import { originForm } from "./request-target.ts";

export interface HttpServerOptions {
  /** Koa's callback, or a dispatcher over several; sees targets in origin-form only. */
  readonly handler: http.RequestListener;
  readonly host: string;
  readonly port: number;
  /** Takes over the sockets of websocket upgrades; without it they are answered as plain requests. */
  readonly upgrade?: (req: http.IncomingMessage, socket: Duplex, head: Buffer) => void;
  readonly logger: Logger;
}

/**
 * Bounds of one connection, in ms and bytes: a client that sends its header or body slowly is disconnected (slowloris).
 * Keep-alive is longer than the 60 s of proxies, so that the relay never closes a connection on which one sends a request.
 */
const CONNECTION_BOUNDS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
} as const;
const MAX_HEADERS = 100;
const MAX_REQUESTS_PER_SOCKET = 1000;
/** A client that does not read its answer is disconnected after two of these periods without a byte of progress. */
const UNREAD_TIMEOUT_MS = 5000;
/** Every answer is due within a second; connections that are still open after this are closed. */
const STOP_GRACE_MS = 1500;

/** An HTTP server on one port. It does not close the websockets that it handed over: stop their owner first. */
export class HttpServer implements Service {
  readonly #options: HttpServerOptions;
  readonly #server: http.Server;
  /**
   * The latest answer on each open socket, those handed over left out. By hand: Node does not say which answers are open,
   * so that a stop could announce the close in their header, nor whether a socket that then breaks was answered.
   */
  readonly #answers = new Map<Socket, http.ServerResponse | null>();
  /** Listener for the close of any socket; its `this` is the socket. */
  readonly #forget: (this: Socket) => void;
  #started: Promise<void> | null = null;
  #stopped: Promise<void> | null = null;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const answers = this.#answers;
    this.#forget = function () {
      answers.delete(this);
    };
    this.#server = http.createServer({
      ...CONNECTION_BOUNDS,
      shouldUpgradeCallback: (req) => options.upgrade !== undefined && isWebsocket(req),
    });
    this.#server.maxHeadersCount = MAX_HEADERS;
    this.#server.maxRequestsPerSocket = MAX_REQUESTS_PER_SOCKET;
    this.#server.timeout = UNREAD_TIMEOUT_MS;
    this.#server.on("connection", (socket) => this.#track(socket));
    this.#server.on("request", (req, res) => this.#answer(req, res));
    this.#server.on("upgrade", (req, socket, head) => this.#upgrade(req, socket as Socket, head));
    this.#server.on("connect", (_, socket) => refuseSocket(socket as Socket, new ServiceError("not_found")));
    this.#server.on("clientError", (error, socket) => this.#refuse(error, socket as Socket));
  }

  /** Port that the server listens on; the one that was asked for unless that was 0. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  start(): Promise<void> {
    this.#started ??= this.#listen();
    return this.#started;
  }

  async #listen(): Promise<void> {
    const { host, port, logger } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
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
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const res of this.#answers.values()) {
      if (res !== null && !res.headersSent) res.setHeader("Connection", "close");
    }
    const deadline = setTimeout(() => this.#server.closeAllConnections(), STOP_GRACE_MS);
    await closed;
    clearTimeout(deadline);
  }

  #track(socket: Socket): void {
    this.#answers.set(socket, null);
    // Node removes its own error listener at an upgrade: without this one, a reset would end the process.
    socket.on("error", ignore);
    socket.on("close", this.#forget);
  }

  /** The socket has a new owner. A pod has tens of thousands of them, so nothing of this server's stays attached. */
  #untrack(socket: Socket): void {
    this.#answers.delete(socket);
    socket.off("close", this.#forget);
    if (socket.listenerCount("error") > 1) socket.off("error", ignore);
  }

  #answer(req: http.IncomingMessage, res: http.ServerResponse): void {
    this.#answers.set(req.socket, res);
    const target = originForm(req.url ?? "");
    if (target === null) {
      sendProblem(res, new ServiceError("not_found"));
      return;
    }
    req.url = target;
    this.#options.handler(req, res);
  }

  #upgrade(req: http.IncomingMessage, socket: Socket, head: Buffer): void {
    const target = originForm(req.url ?? "");
    if (target === null) {
      refuseSocket(socket, new ServiceError("not_found"));
      return;
    }
    req.url = target;
    this.#options.upgrade?.(req, socket, head);
    this.#untrack(socket);
  }

  /** A request that is not valid HTTP gets a last answer, unless it has its answer already or another one is being sent. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const answer = this.#answers.get(socket);
    const isAnswered = answer?.headersSent === true && !(answer.writableFinished && answer.req.complete);
    if (error.code === "ECONNRESET" || !socket.writable || isAnswered) {
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

function isWebsocket(req: http.IncomingMessage): boolean {
  return req.headers.upgrade?.toLowerCase() === "websocket";
}

function sendProblem(res: http.ServerResponse, error: ServiceError): void {
  const { status, headers, body } = problemOf(error);
  res.writeHead(status, headers).end(JSON.stringify(body));
}

function refuseSocket(socket: Socket, error: ServiceError): void {
  socket.write(rawProblem(error));
  socket.destroySoon();
}
