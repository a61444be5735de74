import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { link } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import type { TLSSocket } from "node:tls";
import { channelDialer } from "../../src/cli/control/channel.ts";
import { LiveLines } from "../../src/cli/control/live-lines.ts";
import type { ControlPlace } from "../../src/cli/control/place.ts";
import { socketPaths } from "../../src/cli/control/socket-path.ts";
import { RelayHttp } from "../../src/cli/relay-http.ts";
import type { CommandLine } from "./shell.ts";

export const [ALICE, BOB] = ["agent://alice", "agent://bob-hmac"];
export const HELLO = '{"message":"Hello, Bob."}';

/** The control sockets of one command line's processes, as any program of the user finds them. */
export class ControlSockets {
  readonly #line: CommandLine;
  readonly #ends: (() => void)[] = [];

  constructor(line: CommandLine) {
    this.#line = line;
  }

  /** Ends what the programs of one test had. */
  clear(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  get folder(): string {
    return this.#line.file(".agent-relay/run");
  }

  /** The socket of the process that has an agent's connection. Call it before a test puts others beside it. */
  async of(agent = ALICE): Promise<string> {
    const [path] = await socketPaths(this.folder, agent, this.place(agent).websocketUrl);
    return path as string;
  }

  /** Where a `relay listen` of alice had its socket, which has ended. */
  async left(): Promise<string> {
    const listener = await this.#line.listen("alice");
    const path = await this.of();
    await listener.stop();
    return path;
  }

  /** As a process that is killed leaves its socket: a file behind which nothing listens. */
  async leave(path: string): Promise<string> {
    const server = createServer();
    await once(server.listen(`${path}.own`), "listening");
    await link(`${path}.own`, path);
    await new Promise((closed) => server.close(closed));
    return path;
  }

  /** Where alice's commands look for a process that has her connection: at whatever has this name, with some end. */
  place(agent = ALICE, url = this.#line.url): ControlPlace {
    const { key } = this.#line.stage.agent("alice");
    const signing = { agent, key, credential: undefined, sealingKeys: [], trust: { issuers: [] } };
    const { signal } = new AbortController();
    const { websocketUrl } = new RelayHttp(url, { env: {}, signal });
    return { signing, websocketUrl, self: randomUUID(), signal, warn: () => {} };
  }

  /** As a command that has the key does. */
  async dial(path: string, place = this.place()): Promise<TLSSocket> {
    const dial = await channelDialer(place);
    const channel = await dial(path, AbortSignal.timeout(10_000));
    this.#ends.push(() => channel.destroy());
    return channel;
  }

  /** Another program of the user, which says nothing of its own. */
  connect(path: string): Socket {
    const socket = connect(path)
      .on("error", () => {})
      .resume();
    this.#ends.push(() => socket.destroy());
    return socket;
  }

  /** Another program of the user, which listens in the folder. */
  async pretend(path: string, meet: (client: Socket) => void): Promise<string> {
    const clients: Socket[] = [];
    const server = createServer((client) => {
      clients.push(client.on("error", () => {}));
      meet(client);
    });
    await once(server.listen(path), "listening");
    this.#ends.push(() => {
      server.close();
      for (const client of clients) client.destroy();
    });
    return path;
  }

  /** One that takes what comes to it to another socket, and back. @param heard called with each piece of what it takes there. */
  async pretendToBe(path: string, heard: (piece: Buffer) => void): Promise<string> {
    return await this.pretend(besides(path, "passed"), (client) => {
      const holder = this.connect(path);
      client.on("data", (piece: Buffer) => {
        heard(piece);
        holder.write(piece);
      });
      holder.pipe(client);
      client.once("close", () => holder.destroy());
      holder.once("close", () => client.destroy());
    });
  }
}

/** Another name that commands of the agent try, too. */
export function besides(path: string, end: string): string {
  const [prefix] = basename(path).split("-");
  return join(dirname(path), `${prefix}-1-${end}`);
}

/** @returns what asks over the channel, and takes the answer; of what waits for the agent followers are told besides. */
export function asker(channel: TLSSocket) {
  const lines = new LiveLines(channel);
  const answers = lines.texts[Symbol.asyncIterator]();
  return async (request: object | string) => {
    lines.write(typeof request === "string" ? request : JSON.stringify(request));
    for (;;) {
      const { value, done } = await answers.next();
      if (done) throw new Error("The channel was closed.");
      const answer = JSON.parse(value);
      if (answer.event !== "pending_sessions") return answer;
    }
  };
}

/** A line of a channel as it was written then. @param ago ms. */
export function dated(text: string, ago = 0): string {
  return `${Number(process.hrtime.bigint() / 1_000_000n) - ago} ${text}\n`;
}

export async function ended(socket: Socket): Promise<void> {
  await new Promise((resolve) => (socket.closed ? resolve(undefined) : socket.once("close", resolve)));
}
