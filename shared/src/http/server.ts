import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { RelayError } from "../contract/errors.ts";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import { problemOf, rawProblem } from "./problem.ts";
import { originForm } from "./target.ts";

export interface HttpServerOptions {
  /** Koa's callback, or a dispatcher over several; sees targets in origin-form only. */
  readonly handler: http.RequestListener;
  readonly host: string;
  readonly port: number;
  /** Takes websocket upgrades, and the sockets with them; without it they are answered as plain requests. */
  readonly upgrade?: (req: http.IncomingMessage, socket: Duplex, head: Buffer) => void;
  readonly logger: Logger;
}

/**
 * What one connection may cost: a client that dribbles its header or its body is cut off, wherever it stops.
 * Keep-alive outlasts the 60 s that proxies hold idle connections for, so that it is never the relay that closes first.
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
/** A client that does not read its answer is cut off when no byte of it has moved for so long, twice in a row. */
const UNREAD_TIMEOUT_MS = 5000;
/** Every answer is due within a second; what is still open after this is cut off. */
const STOP_GRACE_MS = 1500;

/** An HTTP server on one port. Websockets that it handed over are their owner's: stop the owner first. */
export class HttpServer implements Service {
  readonly #options: HttpServerOptions;
  readonly #server: http.Server;
  /** Open sockets but those handed over, each with its newest answer. */
  readonly #sockets = new Map<Socket, http.ServerResponse | null>();
  /** Listener for the close of any socket; its `this` is the socket. */
  readonly #forget: (this: Socket) => void;
  #stopped: Promise<void> | null = null;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const sockets = this.#sockets;
    this.#forget = function () {
      sockets.delete(this);
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
    this.#server.on("connect", (_, socket) => refuseSocket(socket as Socket, new RelayError("not_found")));
    this.#server.on("clientError", (error, socket) => this.#refuse(error, socket as Socket));
  }

  /** Port that the server listens on; the one that was asked for unless that was 0. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
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
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const res of this.#sockets.values()) {
      if (res !== null && !res.headersSent) res.setHeader("Connection", "close");
    }
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets.keys()) socket.destroy();
    }, STOP_GRACE_MS);
    await closed;
    clearTimeout(cutOff);
  }

  #track(socket: Socket): void {
    this.#sockets.set(socket, null);
    // Node takes its own listener away at an upgrade: without this one a reset would end the process.
    socket.on("error", ignore);
    socket.on("close", this.#forget);
  }

  /** The socket is somebody else's now. A pod has tens of thousands of those: none holds what it has no use for. */
  #untrack(socket: Socket): void {
    this.#sockets.delete(socket);
    socket.off("close", this.#forget);
    if (socket.listenerCount("error") > 1) socket.off("error", ignore);
  }

  #answer(req: http.IncomingMessage, res: http.ServerResponse): void {
    this.#sockets.set(req.socket, res);
    const target = originForm(req.url ?? "");
    if (target === null) {
      sendProblem(res, new RelayError("not_found"));
      return;
    }
    req.url = target;
    this.#options.handler(req, res);
  }

  #upgrade(req: http.IncomingMessage, socket: Socket, head: Buffer): void {
    const target = originForm(req.url ?? "");
    if (target === null) {
      refuseSocket(socket, new RelayError("not_found"));
      return;
    }
    req.url = target;
    this.#options.upgrade?.(req, socket, head);
    this.#untrack(socket);
  }

  /** What is no HTTP gets one last answer, unless another answer is on its way or has been given to this very request. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const answer = this.#sockets.get(socket);
    const isAnswered = answer?.headersSent === true && !(answer.writableFinished && answer.req.complete);
    if (error.code === "ECONNRESET" || !socket.writable || isAnswered) {
      socket.destroy();
      return;
    }
    refuseSocket(
      socket,
      new RelayError("invalid_request", { detail: "The request is not valid HTTP, or came too slowly." }),
    );
  }
}

function ignore(): void {}

function isWebsocket(req: http.IncomingMessage): boolean {
  return req.headers.upgrade?.toLowerCase() === "websocket";
}

function sendProblem(res: http.ServerResponse, error: RelayError): void {
  const { status, headers, body } = problemOf(error);
  res.writeHead(status, headers).end(JSON.stringify(body));
}

function refuseSocket(socket: Socket, error: RelayError): void {
  socket.write(rawProblem(error));
  socket.destroySoon();
}
