import { once } from "node:events";
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

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
