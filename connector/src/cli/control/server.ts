import { createServer, type Server, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Connector } from "../../connector.ts";
import { unlessAway } from "../../unless-away.ts";
import type { Io } from "../io.ts";
import type { SigningAgent } from "../key-file.ts";
import { channelOpener } from "./channel.ts";
import { type PendingNotice, pendingLine, stateLine, tellFollower } from "./follow.ts";
import { execute } from "./request.ts";
import { serveRequestLines } from "./request-lines.ts";
import { socketFolder, socketPath } from "./socket-path.ts";
import { removeStaleSockets } from "./stale-sockets.ts";

/** Whoever waits at a prompt is told within 3 s; connections that are replaced are back sooner, as a rule. */
const AWAY_MS = 2000;
/** A process that follows and does not read is let go: it then connects by itself. */
const MAX_UNREAD_BYTES = 8_388_608;
/** More than any request has: a line without an end would fill the memory. */
const MAX_LINE_BYTES = 262_144;
const MAX_CLIENTS = 128;

/**
 * The control socket of a running `relay listen` or `relay mcp`: other commands of the same user that have the agent's key send
 * through its connector.
 */
export class ControlServer {
  readonly #connector: Connector;
  readonly #signing: SigningAgent;
  readonly #websocketUrl: string;
  readonly #io: Io;
  readonly #clients = new Set<Socket>();
  #server: Server | undefined;
  /** The latest, for those who follow later. */
  #pending: PendingNotice | undefined;

  constructor(connector: Connector, signing: SigningAgent, websocketUrl: string, io: Io) {
    this.#connector = connector;
    this.#signing = signing;
    this.#websocketUrl = websocketUrl;
    this.#io = io;
  }

  /** @returns the socket's path. Without a private folder there is no control socket, and it does without. */
  async start(): Promise<string | undefined> {
    this.#connector.on("notice", (notice) => {
      if (notice.kind === "pending_sessions") this.#pending = notice;
    });
    const folder = await socketFolder(this.#io.env);
    if (folder === undefined) return undefined;
    const path = socketPath(folder, this.#connector.agent, this.#websocketUrl);
    await removeStaleSockets(folder);
    const open = channelOpener(this.#signing, this.#websocketUrl, (client) => void this.#serve(client));
    this.#server = createServer((socket) => {
      this.#clients.add(socket.on("error", () => {}));
      socket.once("close", () => this.#clients.delete(socket));
      void open(socket);
    });
    this.#server.on("error", () => {});
    this.#server.maxConnections = MAX_CLIENTS;
    await new Promise<void>((done) => this.#server?.once("error", () => done()).listen(path, done));
    return path;
  }

  stop(): void {
    this.#server?.close();
    for (const client of this.#clients) client.destroy();
  }

  async #serve(client: TLSSocket): Promise<void> {
    const closed = new AbortController();
    client.on("error", () => {}).once("close", () => closed.abort());
    const perform: typeof execute = (connector, request) =>
      unlessAway(connector, AWAY_MS, (away) => execute(connector, request, AbortSignal.any([away, closed.signal])));
    const signal = AbortSignal.any([this.#io.signal, closed.signal]);
    boundLines(client);
    let isFollowing = false;
    const follow = () => {
      if (isFollowing) return stateLine(this.#connector.state);
      isFollowing = true;
      return this.#tell(client);
    };
    // The socket of a client that was killed fails to be read, which ends what it asked for and nothing else.
    await serveRequestLines(client, client, this.#connector, { signal, perform, follow }).catch(() => {});
    client.end();
  }

  /** @returns the present state; what follows is written as it comes. */
  #tell(client: TLSSocket): string {
    const write = (line: string) => {
      client.write(`${line}\n`);
      if (client.writableLength > MAX_UNREAD_BYTES) client.destroy();
    };
    const end = tellFollower(this.#connector, write);
    client.once("close", end);
    if (this.#pending !== undefined) write(pendingLine(this.#pending));
    return stateLine(this.#connector.state);
  }
}

/** Ends a client whose line has no end. */
function boundLines(client: TLSSocket): void {
  let bytes = 0;
  client.on("data", (chunk: Buffer) => {
    const end = chunk.lastIndexOf("\n");
    bytes = end === -1 ? bytes + chunk.length : chunk.length - end - 1;
    if (bytes > MAX_LINE_BYTES) client.destroy();
  });
}
