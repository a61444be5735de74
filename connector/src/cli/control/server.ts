import { rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Connector } from "../../connector.ts";
import type { Io } from "../io.ts";
import { unlessAway } from "./away.ts";
import { execute } from "./request.ts";
import { serveRequestLines } from "./request-lines.ts";
import { socketFolder, socketPath } from "./socket-path.ts";

/** The control socket of a running `relay listen`: other commands of the same user send through its connector. */
export class ControlServer {
  readonly #connector: Connector;
  readonly #websocketUrl: string;
  readonly #io: Io;
  readonly #clients = new Set<Socket>();
  #server: Server | undefined;

  constructor(connector: Connector, websocketUrl: string, io: Io) {
    this.#connector = connector;
    this.#websocketUrl = websocketUrl;
    this.#io = io;
  }

  /** Without a private folder for the socket there is no control socket; `relay listen` works without it. */
  async start(): Promise<void> {
    const folder = await socketFolder(this.#io.env);
    if (folder === undefined) return;
    const path = socketPath(folder, this.#connector.agent, this.#websocketUrl);
    await rm(path, { force: true });
    this.#server = createServer({ allowHalfOpen: true }, (client) => void this.#serve(client));
    this.#server.on("error", () => {});
    await new Promise<void>((done) => this.#server?.once("error", () => done()).listen(path, done));
  }

  stop(): void {
    this.#server?.close();
    for (const client of this.#clients) client.destroy();
  }

  async #serve(client: Socket): Promise<void> {
    const closed = new AbortController();
    this.#clients.add(client);
    client
      .on("error", () => {})
      .once("close", () => {
        this.#clients.delete(client);
        closed.abort();
      });
    const perform: typeof execute = (connector, request) =>
      unlessAway(connector, (away) => execute(connector, request, away));
    const signal = AbortSignal.any([this.#io.signal, closed.signal]);
    await serveRequestLines(client, client, this.#connector, { signal, perform });
    client.end();
  }
}
