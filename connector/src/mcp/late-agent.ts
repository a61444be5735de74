import { RelayError } from "../errors.ts";
import type { McpAgent } from "./agent.ts";

/**
 * Makes an agent, not started. Rejects with an error that has `code`, `message` and `hint`.
 * @param former the one before it. It is returned where its connection still tries, and its key is the present one.
 */
export type Make = (former: McpAgent | undefined) => Promise<McpAgent>;

/**
 * The agent that the tools act as, from when it can be made: its key may not be readable yet. Each call that finds none online
 * looks whether another is to be made, so that what a person mends meanwhile counts without a restart.
 */
export class LateAgent {
  readonly #make: Make;
  readonly #listeners = new Set<(agent: McpAgent) => void>();
  #agent: Promise<McpAgent> | undefined;
  /** The latest, whatever became of its connection. */
  #made: McpAgent | undefined;
  #isClosed = false;

  constructor(make: Make) {
    this.#make = make;
  }

  /** The agent, which has begun to connect. Rejects as `make` does. */
  async present(): Promise<McpAgent> {
    if (this.#isClosed) throw new RelayError("closed");
    this.#agent ??= this.#begin();
    return await this.#agent;
  }

  /**
   * The same, but where it is not online, one that has begun to connect with the present key. Calls that come together begin one.
   */
  async connecting(): Promise<McpAgent> {
    const present = this.present();
    const begun = this.#agent;
    const agent = await present;
    if (agent.connector.state.status === "online") return agent;
    if (this.#agent === begun) this.#agent = this.#begin();
    return await this.present();
  }

  /** Calls the listener with each delivery, once it waits for a call. @returns a function that ends it. */
  onDelivery(listener: (agent: McpAgent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when its connection has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#agent?.catch(() => {});
    await this.#made?.connector.close();
  }

  async #begin(): Promise<McpAgent> {
    try {
      const former = this.#made;
      const agent = await this.#make(former);
      if (agent === former) return agent;
      // Two connections of one agent would end each other.
      await former?.connector.close();
      this.#made = agent;
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
