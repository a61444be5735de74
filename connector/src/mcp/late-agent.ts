import { RelayError } from "../errors.ts";
import type { McpAgent } from "./agent.ts";

/**
 * The agent that the tools act as, from when it can be made: its key may not be readable yet. Each call that finds none tries
 * again, and says why not, so that what a person mends meanwhile counts without a restart.
 */
export class LateAgent {
  readonly #make: () => Promise<McpAgent>;
  readonly #listeners = new Set<(agent: McpAgent) => void>();
  #agent: Promise<McpAgent> | undefined;
  #isClosed = false;

  /** @param make not started; rejects with an error that has `code`, `message` and `hint`. */
  constructor(make: () => Promise<McpAgent>) {
    this.#make = make;
  }

  /** The agent, which has begun to connect. Rejects as `make` does. */
  async present(): Promise<McpAgent> {
    if (this.#isClosed) throw new RelayError("closed");
    this.#agent ??= this.#begin();
    return await this.#agent;
  }

  /** Calls the listener with each delivery, once it waits for a call. @returns a function that ends it. */
  onDelivery(listener: (agent: McpAgent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when its connection has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const agent = await this.#agent?.catch(() => undefined);
    await agent?.connector.close();
  }

  async #begin(): Promise<McpAgent> {
    try {
      const agent = await this.#make();
      agent.start();
      agent.connector.on("delivery", () => {
        for (const listener of this.#listeners) listener(agent);
      });
      return agent;
    } catch (error) {
      this.#agent = undefined;
      throw error;
    }
  }
}
