import type { Redis } from "ioredis";
import { unlessElsewhere } from "./link-down.ts";
import type { Reply } from "./scripts.ts";

/** The sharded channels that one client hears, on whatever connection it has. */
export class Subscriptions {
  readonly #client: Redis;
  /** By channel. */
  readonly #listeners = new Map<string, (message: string) => void>();
  /** Channels that were subscribed to on the present connection. */
  readonly #subscribed = new Set<string>();

  constructor(client: Redis) {
    this.#client = client;
    client.on("close", () => this.#subscribed.clear());
    client.on("smessage", (channel: string, message: string) => this.#listeners.get(channel)?.(message));
  }

  add(channel: string, listener: (message: string) => void): void {
    this.#listeners.set(channel, listener);
  }

  remove(channel: string): void {
    this.#listeners.delete(channel);
    this.#subscribed.delete(channel);
  }

  /** True while some channel was not subscribed to on the present connection, as one that came while that was set up. */
  get isBehind(): boolean {
    return this.#subscribed.size < this.#listeners.size;
  }

  async subscribe(channel: string): Promise<Reply> {
    this.#subscribed.add(channel);
    return (await this.#client.ssubscribe(channel)) as Reply;
  }

  async unsubscribe(channel: string): Promise<Reply> {
    return (await this.#client.sunsubscribe(channel)) as Reply;
  }

  /** Subscribes to those that are left. A channel whose slot another node of a cluster has is passed over. */
  async catchUp(): Promise<void> {
    for (const channel of this.#listeners.keys()) {
      if (!this.#subscribed.has(channel)) await this.subscribe(channel).catch(unlessElsewhere);
    }
  }
}
