import type { Connector } from "../connector.ts";
import { MAX_INBOX } from "../limits.ts";
import type { PendingSession } from "../types.ts";
import { MessageQueue } from "./message-queue.ts";
import { ReceivedMessages } from "./received-messages.ts";

/**
 * Asks the relay for the presence of an agent. Resolves with its answer; rejects with an error that has `code`, `message`
 * and `hint`.
 */
export type PresenceOf = (agentId: string, signal: AbortSignal) => Promise<unknown>;

/** The agent that the tools act as: its connection, its unread messages, and its pending sessions. */
export class McpAgent {
  readonly connector: Connector;
  readonly presenceOf: PresenceOf;
  readonly queue: MessageQueue = new MessageQueue(MAX_INBOX);
  /** Messages that the model has seen. */
  readonly received: ReceivedMessages = new ReceivedMessages();
  #pendingSessions: readonly PendingSession[] = [];

  constructor(connector: Connector, presenceOf: PresenceOf) {
    this.connector = connector;
    this.presenceOf = presenceOf;
  }

  /** Starts connecting; the connector's state tells the progress. */
  start(): void {
    this.connector.on("delivery", (delivery) => this.queue.add(delivery));
    this.connector.on("overflow", () => this.queue.countDropped());
    this.connector.on("state", ({ status }) => {
      if (status === "closed") this.queue.end();
    });
    this.connector.on("notice", (notice) => {
      if (notice.kind === "pending_sessions") this.#pendingSessions = notice.sessions;
    });
    void this.connector.start();
  }

  /** The sessions of the latest notice that are neither decided here nor expired. */
  pendingSessions(): readonly PendingSession[] {
    return this.#pendingSessions.filter(({ expiresAt }) => expiresAt.getTime() > Date.now());
  }

  decided(sessionId: string): void {
    this.#pendingSessions = this.#pendingSessions.filter((session) => session.sessionId !== sessionId);
  }
}
