import { rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { basename } from "node:path";
import type { Connector } from "../../connector.ts";
import { unlessAway } from "../../unless-away.ts";
import type { Io } from "../io.ts";
import type { SigningAgent } from "../key-file.ts";
import { Admission } from "./admission.ts";
import { type PendingNotice, pendingLine, stateLine, tellFollower } from "./follow.ts";
import { execute } from "./request.ts";
import { serveRequestLines } from "./request-lines.ts";
import { socketFolder, socketPath } from "./socket-path.ts";

/** Whoever waits at a prompt is told within 3 s; connections that are replaced are back sooner, as a rule. */
const AWAY_MS = 2000;
/** A process that follows and does not read is let go: it then connects by itself. */
const MAX_UNREAD_BYTES = 8_388_608;
/** More than any request has: a line without an end would fill the memory. */
const MAX_LINE_BYTES = 262_144;
/** Whoever has the key proves it at once; others keep no connection of this process for longer. */
const PROOF_MS = 5000;
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
    await rm(path, { force: true });
    this.#server = createServer({ allowHalfOpen: true }, (client) => void this.#serve(client, basename(path)));
    this.#server.on("error", () => {});
    this.#server.maxConnections = MAX_CLIENTS;
    await new Promise<void>((done) => this.#server?.once("error", () => done()).listen(path, done));
    return path;
  }

  stop(): void {
    this.#server?.close();
    for (const client of this.#clients) client.destroy();
  }

  async #serve(client: Socket, socketName: string): Promise<void> {
    const closed = new AbortController();
    this.#clients.add(client);
    client
      .on("error", () => {})
      .once("close", () => {
        this.#clients.delete(client);
        closed.abort();
      });
    const perform: typeof execute = (connector, request) =>
      unlessAway(connector, AWAY_MS, (away) => execute(connector, request, AbortSignal.any([away, closed.signal])));
    const signal = AbortSignal.any([this.#io.signal, closed.signal]);
    const admission = new Admission(this.#signing, socketName);
    boundLines(client);
    setTimeout(() => admission.isProven || client.destroy(), PROOF_MS).unref();
    const admit = (line: unknown) => admission.answerTo(line);
    const follow = () => this.#tell(client);
    // The socket of a client that was killed fails to be read, which ends what it asked for and nothing else.
    await serveRequestLines(client, client, this.#connector, { signal, perform, admit, follow }).catch(() => {});
    client.end();
  }

  /** @returns the present state; what follows is written as it comes. */
  #tell(client: Socket): string {
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
function boundLines(client: Socket): void {
  let bytes = 0;
  client.on("data", (chunk: Buffer) => {
    const end = chunk.lastIndexOf("\n");
    bytes = end === -1 ? bytes + chunk.length : chunk.length - end - 1;
    if (bytes > MAX_LINE_BYTES) client.destroy();
  });
}
