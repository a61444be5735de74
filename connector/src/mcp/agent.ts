import { MAX_INBOX } from "../limits.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { MessageQueue } from "./message-queue.ts";
import { ReceivedMessages } from "./received-messages.ts";
import { SessionRequests } from "./session-requests.ts";

/**
 * Asks the relay for the presence of an agent. Resolves with its answer; rejects with an error that has `code`, `message`
 * and `hint`.
 */
export type PresenceOf = (agentId: string, signal: AbortSignal) => Promise<unknown>;

/** The agent that the tools act as: its connection, its unread messages, and the sessions requested of it. */
export class McpAgent {
  readonly connector: AgentConnection;
  readonly presenceOf: PresenceOf;
  readonly queue: MessageQueue = new MessageQueue(MAX_INBOX);
  /** Messages that the model has seen. */
  readonly received: ReceivedMessages = new ReceivedMessages();
  readonly requests: SessionRequests = new SessionRequests();

  /** @param connector not started. */
  constructor(connector: AgentConnection, presenceOf: PresenceOf) {
    this.connector = connector;
    this.presenceOf = presenceOf;
  }

  /** Starts connecting; the connector's state tells the progress. */
  start(): void {
    this.connector.on("delivery", (delivery) => {
      this.requests.received(delivery);
      this.queue.add(delivery);
    });
    this.connector.on("overflow", () => this.queue.countDropped());
    this.connector.on("state", ({ status }) => {
      if (status === "closed") this.queue.end();
    });
    this.connector.on("notice", (notice) => {
      if (notice.kind === "pending_sessions") this.requests.noticed(notice.sessions);
    });
    void this.connector.start();
  }
}
