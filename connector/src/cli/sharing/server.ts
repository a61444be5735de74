import { once } from "node:events";
import type { Socket } from "node:net";
import type { Interface } from "node:readline";
import type { Connector } from "../../connector.ts";
import type { ConnectorState } from "../../types.ts";
import { unlessAway } from "../../unless-away.ts";
import { VERSION } from "../../version.ts";
import { deliveryMembers, jsonLine } from "../io.ts";
import { isOfSessions, noticeLine, onState, SessionNotices, stateLine } from "./events.ts";
import { serveRequestLines } from "./requests.ts";
import { ALIVE, type ControlPlace, type ControlSocket, FORMAT, linesOf, listenAt } from "./socket.ts";

/** Whoever waits at a prompt is told within 3 s; connections that are replaced are back sooner, as a rule. */
const AWAY_MS = 2000;
/** A process that follows and does not read is let go: it then connects by itself. */
const MAX_UNREAD_BYTES = 8_388_608;
/** Whoever does not take the last answers holds up no end. */
const LAST_ANSWERS_MS = 1000;
/** The answer to a line that is not taken. A client that waits for none ignores it. */
const ENDING = jsonLine({
  event: "refused",
  code: "unreachable",
  retry: "later",
  outcome: "refused",
  message: "The process that has the agent's connection ends.",
  hint: "Nothing was sent. Send it again.",
});

/**
 * The control socket of a running `relay listen` or `relay mcp`: other commands of the same user send through its connector, and
 * follow what comes over it. The first line says whose it is. Then each request is a line, and so is its answer.
 */
export class ControlServer {
  readonly #connector: Connector;
  readonly #place: ControlPlace;
  readonly #clients = new Map<Socket, Interface>();
  readonly #notices = new SessionNotices();
  readonly #followed: (count: number) => void;
  #socket: ControlSocket | undefined;
  #followers = 0;
  #state: ConnectorState;
  #isStopped = false;

  /** @param followed called with how many processes share the connection, whenever that changes. */
  constructor(connector: Connector, place: ControlPlace, followed: (count: number) => void = () => {}) {
    this.#connector = connector;
    this.#place = place;
    this.#followed = followed;
    this.#state = connector.state;
  }

  /** @returns the socket's path; undefined where there can be none: it is warned of, and the connection is shared with nobody. */
  async start(): Promise<string | undefined> {
    this.#connector.on("notice", (notice) => {
      if (isOfSessions(notice)) this.#notices.noticed(notice);
    });
    this.#connector.on("delivery", (delivery) => this.#notices.received(delivery));
    onState(this.#connector, (state) => {
      this.#state = state;
    });
    this.#socket = await listenAt(this.#place, (client) => void this.#serve(client));
    if (this.#isStopped) this.#socket?.server.close();
    return this.#isStopped ? undefined : this.#socket?.path;
  }

  /** Takes nobody and nothing from now on. What was taken is still answered. */
  stop(): void {
    this.#isStopped = true;
    this.#socket?.server.close();
    for (const lines of this.#clients.values()) lines.close();
    setTimeout(() => this.#destroyClients(), LAST_ANSWERS_MS).unref();
  }

  #destroyClients(): void {
    for (const client of this.#clients.keys()) client.destroy();
  }

  async #serve(client: Socket): Promise<void> {
    const closed = new AbortController();
    const signal = AbortSignal.any([this.#place.signal, closed.signal]);
    const lines = linesOf(client);
    this.#clients.set(client, lines);
    const alive = setInterval(() => client.write("\n"), ALIVE.everyMs).unref();
    client.once("close", () => {
      clearInterval(alive);
      this.#clients.delete(client);
      closed.abort();
    });
    const bounded = <T>(call: (signal: AbortSignal) => Promise<T>, outlasts?: boolean) =>
      unlessAway(this.#connector, AWAY_MS, (away) => call(AbortSignal.any([away, signal])), outlasts);
    let drained: Promise<unknown> | undefined;
    const write = async (line: string) => {
      if (client.write(`${line}\n`)) return;
      drained ??= once(client, "drain", { signal })
        .catch(() => {})
        .finally(() => (drained = undefined));
      await drained;
    };
    let isFollowing = false;
    const follow = () => {
      if (!isFollowing) this.#tell(client);
      isFollowing = true;
      return stateLine(this.#state);
    };
    client.write(`${jsonLine({ event: "control", format: FORMAT, version: VERSION, pid: process.pid })}\n`);
    await serveRequestLines(lines, write, this.#connector, { bounded, follow }).catch(() => {});
    if (client.writable) client.end(`${ENDING}\n`).resume();
  }

  /** Writes what comes over the connection from now on, and first which sessions wait for the agent. */
  #tell(client: Socket): void {
    if (client.destroyed) return;
    const write = (line: string) => {
      client.write(`${line}\n`);
      if (client.writableLength > MAX_UNREAD_BYTES) client.destroy();
    };
    const ends = [
      onState(this.#connector, (state) => write(stateLine(state))),
      this.#connector.on("delivery", (delivery) =>
        write(jsonLine({ event: "delivery", ...deliveryMembers(delivery) })),
      ),
      this.#connector.on("notice", (notice) => isOfSessions(notice) && write(noticeLine(notice))),
      () => this.#count(-1),
    ];
    client.once("close", () => {
      for (const end of ends) end();
    });
    this.#count(1);
    for (const notice of this.#notices.all()) write(noticeLine(notice));
  }

  #count(change: 1 | -1): void {
    this.#followers += change;
    this.#followed(this.#followers);
  }
}
