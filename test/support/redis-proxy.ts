import type { NetConnectOpts } from "node:net";
import type { AgentSocket } from "./agent.ts";
import { type Link, TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

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
