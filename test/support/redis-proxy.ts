import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { temporaryFolder } from "./temporary-folder.ts";

/** The names under which a ws-connector's two links present themselves to Redis. */
export type LinkName = "ws-connector" | "ws-connector-channel";

interface Pair {
  name: string;
  /** Kept back on its way from Redis. */
  readonly held: Buffer[];
  readonly client: Socket;
  readonly redis: Socket;
}

/** Stands between a pod and Redis, and keeps back what Redis says on one of its links, until `letGo`. */
export class RedisProxy {
  readonly #upstream: string;
  readonly #pairs = new Set<Pair>();
  readonly #holding = new Set<LinkName>();
  /** What Redis said, by link. */
  readonly #said = new Map<string, string>();
  #asked = "";
  #server: Server | undefined;
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  /** @param upstream path of the socket of Redis. */
  constructor(upstream: string) {
    this.#upstream = upstream;
  }

  get url(): string {
    return `unix://${this.#path}`;
  }

  get #path(): string {
    return join((this.#folder as { path: string }).path, "proxy.sock");
  }

  async start(): Promise<this> {
    this.#folder = await temporaryFolder();
    const server = createServer((client) => this.#join(client));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.#path, resolve));
    return this;
  }

  async stop(): Promise<void> {
    for (const { client } of this.#pairs) client.destroy();
    await new Promise((resolve) => this.#server?.close(resolve));
    await this.#folder?.[Symbol.asyncDispose]();
  }

  holdReplies(name: LinkName): void {
    this.#holding.add(name);
    this.#said.delete(name);
  }

  letGo(name: LinkName): void {
    this.#holding.delete(name);
    for (const { held, client } of this.#pairsOf(name)) for (const chunk of held.splice(0)) client.write(chunk);
  }

  /** True when Redis has said `text` on that link since it was held. */
  hasSaid(name: LinkName, text: string): boolean {
    return this.#said.get(name)?.includes(text) ?? false;
  }

  #pairsOf(name: LinkName): Pair[] {
    return [...this.#pairs].filter((pair) => pair.name === name);
  }

  /** True when the pod has asked for something that holds `text`, whatever the link. */
  hasAsked(text: string): boolean {
    return this.#asked.includes(text);
  }

  #join(client: Socket): void {
    const pair: Pair = { name: "", held: [], client, redis: connect(this.#upstream) };
    this.#pairs.add(pair);
    client.on("data", (chunk) => {
      pair.name ||= /setname\r\n\$\d+\r\n(\S+)\r\n/i.exec(chunk.toString("latin1"))?.[1] ?? "";
      this.#asked += chunk.toString("latin1");
      pair.redis.write(chunk);
    });
    pair.redis.on("data", (chunk: Buffer) => {
      this.#said.set(pair.name, (this.#said.get(pair.name) ?? "") + chunk.toString("latin1"));
      if (this.#holding.has(pair.name as LinkName)) pair.held.push(chunk);
      else client.write(chunk);
    });
    for (const [one, other] of [
      [client, pair.redis],
      [pair.redis, client],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => {
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
