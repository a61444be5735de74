import type { Redis } from "ioredis";
import { unlessElsewhere } from "./link-down.ts";
import type { Reply } from "./scripts.ts";

/** The sharded channels that one client hears, on whatever connection it has. */
export class Subscriptions {
  readonly #client: Redis;
  /** By channel. */
  readonly #listeners = new Map<string, (message: string) => void>();

  constructor(client: Redis) {
    this.#client = client;
    client.on("smessage", (channel: string, message: string) => this.#listeners.get(channel)?.(message));
  }

  add(channel: string, listener: (message: string) => void): void {
    this.#listeners.set(channel, listener);
  }

  remove(channel: string): void {
    this.#listeners.delete(channel);
  }

  async subscribe(channel: string): Promise<Reply> {
    return (await this.#client.ssubscribe(channel)) as Reply;
  }

  async unsubscribe(channel: string): Promise<Reply> {
    return (await this.#client.sunsubscribe(channel)) as Reply;
  }

  /** Subscribes to all of them on a new connection. A channel whose slot another node of a cluster has is left out. */
  async renew(): Promise<void> {
    for (const channel of this.#listeners.keys()) await this.subscribe(channel).catch(unlessElsewhere);
  }
}
