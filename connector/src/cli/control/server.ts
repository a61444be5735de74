import { once } from "node:events";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Connector } from "../../connector.ts";
import type { ConnectorState } from "../../types.ts";
import { unlessAway } from "../../unless-away.ts";
import { jsonLine } from "../output.ts";
import { acceptedChannel, canOpenChannels } from "./channel.ts";
import { Clients } from "./clients.ts";
import { ControlSocket } from "./control-socket.ts";
import { tellFollower } from "./follow.ts";
import { isOfSessions, noticeLine, stateLine } from "./follow-lines.ts";
import { LiveLines } from "./live-lines.ts";
import type { ControlPlace } from "./place.ts";
import { serveRequestLines } from "./request-lines.ts";
import { SessionNotices } from "./session-notices.ts";
import { onState } from "./told-states.ts";

/** Whoever waits at a prompt is told within 3 s; connections that are replaced are back sooner, as a rule. */
const AWAY_MS = 2000;
/** A process that follows and does not read is let go: it then connects by itself. */
const MAX_UNREAD_BYTES = 8_388_608;
/** More than any request has: a line without an end would fill the memory. */
const MAX_LINE_BYTES = 262_144;
/** Whoever does not take the last answers holds up no end. */
const LAST_ANSWERS_MS = 1000;

/**
 * The control socket of a running `relay listen` or `relay mcp`: other commands of the same user that have the agent's key send
 * through its connector.
 */
export class ControlServer {
  readonly #connector: Connector;
  readonly #place: ControlPlace;
  readonly #clients = new Clients();
  readonly #socket: ControlSocket;
  readonly #served = new Set<LiveLines>();
  readonly #notices = new SessionNotices();
  readonly #followed: (count: number) => void;
  #followers = 0;
  #state: ConnectorState;
  #isStopped = false;

  /** @param followed called with how many processes share the connection, whenever that changes. */
  constructor(connector: Connector, place: ControlPlace, followed: (count: number) => void = () => {}) {
    this.#connector = connector;
    this.#place = place;
    this.#followed = followed;
    this.#state = connector.state;
    this.#socket = new ControlSocket(place, (client) => void this.#meet(client));
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
    return canOpenChannels(this.#place.warn) ? await this.#socket.start() : undefined;
  }

  /** Takes nobody and nothing from now on. What was taken is still answered. */
  stop(): void {
    this.#isStopped = true;
    this.#socket.stop();
    for (const lines of this.#served) lines.stop();
    setTimeout(() => this.#clients.destroy(), LAST_ANSWERS_MS).unref();
  }

  async #meet(client: Socket): Promise<void> {
    this.#clients.admit(client);
    const channel = await acceptedChannel(client, this.#place).catch(() => undefined);
    if (channel === undefined) client.destroy();
    else if (this.#clients.prove(client)) await this.#serve(channel);
  }

  async #serve(client: TLSSocket): Promise<void> {
    const closed = new AbortController();
    client.once("close", () => closed.abort());
    const signal = AbortSignal.any([this.#place.signal, closed.signal]);
    const bounded = <T>(call: (signal: AbortSignal) => Promise<T>, outlasts?: boolean) =>
      unlessAway(this.#connector, AWAY_MS, (away) => call(AbortSignal.any([away, signal])), outlasts);
    boundLines(client);
    const lines = new LiveLines(client);
    const write = async (text: string) => {
      if (!lines.write(text)) await once(client, "drain", { signal }).catch(() => {});
    };
    let isFollowing = false;
    const follow = () => {
      if (isFollowing) return stateLine(this.#state);
      isFollowing = true;
      return this.#tell(client, lines);
    };
    this.#served.add(lines);
    if (this.#isStopped) lines.stop();
    await serveRequestLines(lines.texts, write, this.#connector, { bounded, follow });
    this.#served.delete(lines);
    // In answer to the lines that were not taken.
    if (client.writable) lines.write(jsonLine(lines.isLate ? LATE : ENDING));
    client.end();
  }

  /** @returns the present state; what follows is written as it comes. */
  #tell(client: TLSSocket, lines: LiveLines): string {
    const write = (line: string) => {
      lines.write(line);
      if (client.writableLength > MAX_UNREAD_BYTES) client.destroy();
    };
    const end = tellFollower(this.#connector, write);
    client.once("close", () => {
      end();
      this.#count(-1);
    });
    this.#count(1);
    for (const notice of this.#notices.all()) write(noticeLine(notice));
    return stateLine(this.#state);
  }

  #count(change: 1 | -1): void {
    this.#followers += change;
    this.#followed(this.#followers);
  }
}

const REFUSED = { event: "refused", code: "unreachable", retry: "later", outcome: "refused" } as const;
const AGAIN = "Nothing was sent: send it again.";
const LATE = { ...REFUSED, message: "It came too late to the process that has the agent's connection.", hint: AGAIN };
const ENDING = { ...REFUSED, message: "The process that has the agent's connection ends.", hint: AGAIN };

/** Ends a client whose line has no end. */
function boundLines(client: TLSSocket): void {
  let bytes = 0;
  client.on("data", (chunk: Buffer) => {
    const end = chunk.lastIndexOf("\n");
    bytes = end === -1 ? bytes + chunk.length : chunk.length - end - 1;
    if (bytes > MAX_LINE_BYTES) client.destroy();
  });
}
