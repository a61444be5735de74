import { once } from "node:events";
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { AgentSocket } from "./agent.ts";
import { until } from "./until.ts";

/** One connection through the proxy. */
export interface Link {
  /** What its client calls itself; empty until it has said so. */
  name: string;
  readonly client: Socket;
  readonly upstream: Socket;
  /** Half-open: nothing passes any more, and neither side learns of the other's end. */
  isDead: boolean;
  /** Settles when what has come from upstream so far was passed on. */
  passedOn: Promise<void>;
}

const EVERY = "*";

/**
 * Stands on a network between two processes and does what befalls networks. Each fault concerns the links of one name, or
 * every link when none is given, and lasts until `heal`.
 */
export class TcpProxy {
  readonly #links = new Set<Link>();
  readonly #cut = new Set<string>();
  readonly #slow = new Map<string, readonly [number, number]>();
  readonly #held = new Map<string, PromiseWithResolvers<void>>();
  readonly #servers: readonly Server[];

  /** @param upstreams each has a port of its own here. */
  constructor(...upstreams: readonly NetConnectOpts[]) {
    this.#servers = upstreams.map((upstream) => createServer((client) => this.#join(client, upstream)));
  }

  /** Where it listens, for each upstream. */
  get ports(): number[] {
    return this.#servers.map((server) => (server.address() as AddressInfo).port);
  }

  /** `127.0.0.1:<port>` of the first. */
  get host(): string {
    return `127.0.0.1:${this.ports[0]}`;
  }

  async start(): Promise<this> {
    for (const server of this.#servers) await once(server.listen(0, "127.0.0.1"), "listening");
    return this;
  }

  async stop(): Promise<void> {
    this.heal();
    for (const link of this.#links) destroy(link);
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }

  /** Ends the links now, and new ones as soon as they say who they are. */
  cut(name = EVERY): void {
    this.#cut.add(name);
    for (const link of this.links(name)) destroy(link);
  }

  /** What comes from upstream is kept back for so long, by chance between the two, in order. */
  slow(leastMs: number, mostMs: number, name = EVERY): void {
    this.#slow.set(name, [leastMs, mostMs]);
  }

  /** What comes from upstream is kept back until `heal` or `letGo`. */
  hold(name = EVERY): void {
    this.#held.set(name, Promise.withResolvers());
  }

  letGo(name = EVERY): void {
    this.#held.get(name)?.resolve();
    this.#held.delete(name);
  }

  /** Reads no more from upstream, so that what is sent fills the kernel's buffers, and then the sender's own. */
  stall(name = EVERY): void {
    for (const { upstream } of this.links(name)) upstream.pause();
  }

  /** The present links swallow everything, an end too, with both sockets open. New ones are sound. */
  halfOpen(name = EVERY): void {
    for (const link of this.links(name)) link.isDead = true;
  }

  /** The network is sound again; links that were half-open are gone. */
  heal(): void {
    this.#cut.clear();
    this.#slow.clear();
    for (const name of [...this.#held.keys()]) this.letGo(name);
    for (const link of this.#links) {
      link.upstream.resume();
      if (link.isDead) destroy(link);
    }
  }

  links(name = EVERY): Link[] {
    return [...this.#links].filter((link) => name === EVERY || link.name === name);
  }

  /** Sees what a client says before it is passed on. */
  protected asked(_link: Link, _chunk: Buffer): void {}

  /** Sees what upstream says before it is passed on. */
  protected said(_link: Link, _chunk: Buffer): void {}

  /** What a client is told in place of what upstream said. */
  protected retold(chunk: Buffer): Buffer {
    return chunk;
  }

  #join(client: Socket, upstream: NetConnectOpts): void {
    if (this.#cut.has(EVERY)) {
      client.destroy();
      return;
    }
    const link: Link = {
      name: "",
      client,
      upstream: connect(upstream),
      isDead: false,
      passedOn: Promise.resolve(),
    };
    this.#links.add(link);
    client.on("data", (chunk: Buffer) => {
      if (link.isDead) return;
      this.asked(link, chunk);
      if (this.#cut.has(link.name)) destroy(link);
      else link.upstream.write(chunk);
    });
    link.upstream.on("data", (chunk: Buffer) => this.#return(link, chunk));
    for (const [one, other] of [
      [client, link.upstream],
      [link.upstream, client],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => {
        if (link.isDead && !other.destroyed) return;
        other.destroy();
        this.#links.delete(link);
      });
    }
  }

  #return(link: Link, chunk: Buffer): void {
    if (link.isDead) return;
    this.said(link, chunk);
    const held = this.#of(this.#held, link)?.promise;
    const due = performance.now() + between(this.#of(this.#slow, link) ?? [0, 0]);
    link.passedOn = link.passedOn.then(async () => {
      await held;
      if (due > performance.now()) await delay(due - performance.now());
      if (!link.isDead) link.client.write(this.retold(chunk));
    });
  }

  #of<T>(faults: ReadonlyMap<string, T>, link: Link): T | undefined {
    return faults.get(link.name) ?? faults.get(EVERY);
  }
}

function destroy({ client, upstream }: Link): void {
  client.destroy();
  upstream.destroy();
}

function between([least, most]: readonly [number, number]): number {
  return least + Math.random() * (most - least);
}

/** The names under which services' links present themselves to Redis. */
export type LinkName = "ws-connector" | "ws-connector-channel" | "gateway" | "ops-reporting";

/** What the name of a link to a node of a Redis Cluster has beside. */
const OF_A_NODE = /@\w+/;
/** How much of what was said is remembered. */
const REMEMBERED = 262_144;
/** How the answer of a script begins that carried out what it was asked. */
const CARRIED_OUT = "$2\r\nok\r\n";
/** The same of one that came after its deadline: a machine may be busy for that long. */
const LATE = "$4\r\nlate\r\n";

/** Stands between one service and Redis, or all nodes of a Redis Cluster, and knows its links by name. */
export class RedisProxy extends TcpProxy {
  /** What Redis said, by link. */
  readonly #said = new Map<string, string>();
  #asked = "";
  #last: string | undefined;
  #toLose: { readonly request: string; link?: Link; readonly done: () => void } | undefined;

  /** @param redisUrls `unix://<path>` or `redis://<host>:<port>`. */
  constructor(...redisUrls: readonly string[]) {
    super(...redisUrls.map(placeOf));
  }

  /** `REDIS_URL` of the service behind the proxy. @param redisUrl the one it would have without; its user stays. */
  urlFor(redisUrl: string): string {
    return redisUrl.startsWith("unix:") ? `redis://${this.host}` : redisUrl.replace(/[^@/]+:\d+$/, this.host);
  }

  get url(): string {
    return `redis://${this.host}`;
  }

  /** Keeps back what Redis says on a link, until `letGo`. */
  holdReplies(name: LinkName): void {
    this.hold(name);
    this.#said.delete(name);
  }

  /** Sends an envelope until Redis has done what it asks for, of which the client's pod hears nothing before `letGo`. */
  async askUnheard(
    name: LinkName,
    client: AgentSocket,
    envelope: object,
    isDone: () => boolean | Promise<boolean>,
  ): Promise<void> {
    for (;;) {
      const before = client.frames.length;
      const isRefused = () => client.frames.length > before;
      this.holdReplies(name);
      client.send(envelope);
      const isOver = async () => isRefused() || this.hasSaid(name, LATE) || (await isDone());
      await until("Redis has done it, or came to it too late", isOver);
      if (await isDone()) return;
      this.letGo(name);
      await until("what came too late is refused", isRefused);
    }
  }

  /** True when Redis has said `text` on that link since it was held. */
  hasSaid(name: LinkName, text: string): boolean {
    return this.#said.get(name)?.includes(text) ?? false;
  }

  /** True when the service has asked for something that holds `text`, whatever the link. */
  hasAsked(text: string): boolean {
    return this.#asked.includes(text);
  }

  /**
   * Lets the next request that holds `text` through, and cuts its link when Redis has carried it out, before the answer
   * comes back. Resolves when that has happened.
   */
  async loseReplyTo(text: string): Promise<void> {
    await new Promise<void>((done) => {
      this.#toLose = { request: text, done };
    });
  }

  /** Lets the next request that holds `text` through, and nothing after it on its link: no answer and no request. */
  swallowAfter(text: string): void {
    this.#last = text;
  }

  protected override asked(link: Link, chunk: Buffer): void {
    const text = chunk.toString("latin1");
    link.name ||= (/setname\r\n\$\d+\r\n(\S+)\r\n/i.exec(text)?.[1] ?? "").replace(OF_A_NODE, "");
    this.#asked = (this.#asked + text).slice(-REMEMBERED);
    if (this.#toLose !== undefined && text.includes(this.#toLose.request)) this.#toLose.link ??= link;
    if (this.#last === undefined || !text.includes(this.#last)) return;
    this.#last = undefined;
    link.isDead = true;
  }

  protected override said(link: Link, chunk: Buffer): void {
    const text = chunk.toString("latin1");
    this.#said.set(link.name, ((this.#said.get(link.name) ?? "") + text).slice(-REMEMBERED));
    if (this.#toLose?.link !== link || !text.includes(CARRIED_OUT)) return;
    const { done } = this.#toLose;
    this.#toLose = undefined;
    link.isDead = true;
    link.client.destroy();
    link.upstream.destroy();
    done();
  }
}

function placeOf(redisUrl: string): NetConnectOpts {
  const { protocol, pathname, hostname, port } = new URL(redisUrl);
  return protocol === "unix:" ? { path: pathname } : { host: hostname, port: Number(port) };
}

/** A reply in RESP2: a status or an error as it stands, or the text of a bulk string. */
type Answer = { readonly raw: string } | { readonly bulk: string };

const DEFAULTS: Readonly<Record<string, Answer>> = {
  HELLO: { raw: "-NOPROTO unsupported protocol version" },
  PING: { raw: "+PONG" },
};

/** Speaks enough of Redis' protocol to be taken for one, whatever version it says it is; counts its connections. */
export class FakeRedis {
  /** When each connection came in: `performance.now()`. */
  readonly connectedAt: number[] = [];
  readonly #answers: Readonly<Record<string, Answer>>;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#serve(socket));

  /** @param answers by command, in upper case; every other command is answered OK. */
  constructor(answers: Readonly<Record<string, Answer>>) {
    this.#answers = { ...DEFAULTS, ...answers };
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.connectedAt.push(performance.now());
    this.#sockets.add(socket);
    let received = "";
    socket.setEncoding("latin1");
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (chunk) => {
      const { commands, rest } = commandsIn(received + chunk);
      received = rest;
      for (const command of commands) socket.write(resp(this.#answers[command.toUpperCase()] ?? { raw: "+OK" }));
    });
  }
}

function resp(answer: Answer): string {
  return "raw" in answer ? `${answer.raw}\r\n` : `$${answer.bulk.length}\r\n${answer.bulk}\r\n`;
}

/** The names of the whole commands in a stream: arrays of bulk strings. */
function commandsIn(text: string): { readonly commands: string[]; readonly rest: string } {
  const commands: string[] = [];
  let rest = text;
  for (;;) {
    const words = wordsOf(rest);
    if (words === null) return { commands, rest };
    commands.push(words.first);
    rest = rest.slice(words.length);
  }
}

function wordsOf(text: string): { readonly first: string; readonly length: number } | null {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return null;
  const words: string[] = [];
  let at = head[0].length;
  for (let n = 0; n < Number(head[1]); n += 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at, at + 16));
    if (size === null) return null;
    const start = at + size[0].length;
    at = start + Number(size[1]) + 2;
    if (text.length < at) return null;
    words.push(text.slice(start, at - 2));
  }
  return { first: words[0] ?? "", length: at };
}
