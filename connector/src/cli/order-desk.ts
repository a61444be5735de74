import { rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Connector } from "../connector.ts";
import type { Io } from "./command.ts";
import { socketFolder, socketPath } from "./listener-socket.ts";
import { serveOrders } from "./order-lines.ts";

/** Takes orders of other commands for the connector of a running `relay listen`. */
export class OrderDesk {
  readonly #connector: Connector;
  readonly #websocketUrl: string;
  readonly #io: Io;
  readonly #guests = new Set<Socket>();
  #server: Server | undefined;

  constructor(connector: Connector, websocketUrl: string, io: Io) {
    this.#connector = connector;
    this.#websocketUrl = websocketUrl;
    this.#io = io;
  }

  /** Listening goes on without the desk where there is no private place for it. */
  async start(): Promise<void> {
    const folder = await socketFolder(this.#io.env);
    if (folder === undefined) return;
    const path = socketPath(folder, this.#connector.agent, this.#websocketUrl);
    await rm(path, { force: true });
    this.#server = createServer({ allowHalfOpen: true }, (guest) => void this.#serve(guest));
    this.#server.on("error", () => {});
    await new Promise<void>((done) => this.#server?.once("error", () => done()).listen(path, done));
  }

  stop(): void {
    this.#server?.close();
    for (const guest of this.#guests) guest.destroy();
  }

  async #serve(guest: Socket): Promise<void> {
    const gone = new AbortController();
    this.#guests.add(guest);
    guest
      .on("error", () => {})
      .once("close", () => {
        this.#guests.delete(guest);
        gone.abort();
      });
    await serveOrders(guest, guest, this.#connector, AbortSignal.any([this.#io.signal, gone.signal]));
    guest.end();
  }
}
