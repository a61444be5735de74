import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { until } from "../../../test/support/until.ts";

/** A subscriber to a pod's channel, with every line that arrived there. */
export class Ear {
  readonly #client: Redis;
  readonly #publisher: Redis;
  readonly #channel: string;
  readonly #messages: string[] = [];

  constructor(client: Redis, publisher: Redis, channel: string) {
    this.#client = client;
    this.#publisher = publisher;
    this.#channel = channel;
  }

  async listen(): Promise<void> {
    this.#client.on("smessage", (_channel: string, message: string) => this.#messages.push(message));
    await this.#client.ssubscribe(this.#channel);
  }

  /** Everything that was published before this call, one publish each; forgets it. */
  async messages(): Promise<string[]> {
    const mark = `mark ${randomUUID()}`;
    await this.#publisher.spublish(this.#channel, mark);
    await until("the mark arrives", () => this.#messages.includes(mark));
    return this.#messages.splice(0, this.#messages.indexOf(mark) + 1).slice(0, -1);
  }

  async lines(): Promise<string[]> {
    return (await this.messages()).flatMap((message) => message.split("\n"));
  }

  /** The pod dies: nobody listens any more. */
  async close(): Promise<void> {
    await this.#client.sunsubscribe(this.#channel);
  }
}
