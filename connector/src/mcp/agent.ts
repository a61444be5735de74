import type { Connector } from "../connector.ts";
import { MAX_INBOX } from "../limits.ts";
import type { PendingSession } from "../types.ts";
import { MessageQueue } from "./message-queue.ts";

/**
 * Reads a surface of the relay's HTTP side; resolves with the JSON object of a success, else rejects with an error that has
 * `code`, `message` and `hint`.
 */
export type Get = (path: string, signal: AbortSignal) => Promise<unknown>;

/** The agent that the tools speak for: its connection, what came in for it, and what waits for its decision. */
export class McpAgent {
  readonly connector: Connector;
  readonly get: Get;
  readonly queue: MessageQueue = new MessageQueue(MAX_INBOX);
  #pending: readonly PendingSession[] = [];

  constructor(connector: Connector, get: Get) {
    this.connector = connector;
    this.get = get;
  }

  /** Connects from now on; what becomes of it, the connector's state says. */
  start(): void {
    this.connector.on("delivery", (delivery) => this.queue.add(delivery));
    this.connector.on("overflow", () => this.queue.lose());
    this.connector.on("state", ({ status }) => {
      if (status === "closed") this.queue.end();
    });
    this.connector.on("notice", (notice) => {
      if (notice.kind === "pending_sessions") this.#pending = notice.sessions;
    });
    void this.connector.start();
  }

  /** Of the latest notice, those that are neither decided here nor expired. */
  pendingSessions(): readonly PendingSession[] {
    return this.#pending.filter(({ expiresAt }) => expiresAt.getTime() > Date.now());
  }

  decided(sessionId: string): void {
    this.#pending = this.#pending.filter((session) => session.sessionId !== sessionId);
  }
}
