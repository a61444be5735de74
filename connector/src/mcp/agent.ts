import { MAX_INBOX } from "../limits.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { type Arrival, DecidedSessions, senderOf } from "./decided-sessions.ts";
import { MessageQueue } from "./message-queue.ts";
import { ReceivedMessages } from "./received-messages.ts";
import { SessionRequests } from "./session-requests.ts";
import type { SessionOf } from "./session-state.ts";

/**
 * Asks the relay for the presence of an agent. Resolves with its answer; rejects with an error that has `code`, `message`
 * and `hint`.
 */
export type PresenceOf = (agentId: string, signal: AbortSignal) => Promise<unknown>;

/** What the relay is asked over HTTP. */
export interface LookUps {
  readonly presenceOf: PresenceOf;
  readonly sessionOf: SessionOf;
}

/** The agent that the tools act as: its connection, its unread messages, and the sessions that it requested or was asked for. */
export class McpAgent {
  readonly connector: AgentConnection;
  readonly presenceOf: PresenceOf;
  readonly sessionOf: SessionOf;
  readonly queue: MessageQueue<Arrival> = new MessageQueue(MAX_INBOX, senderOf);
  /** Messages that the model has seen. */
  readonly received: ReceivedMessages = new ReceivedMessages();
  readonly requests: SessionRequests = new SessionRequests();
  readonly decisions: DecidedSessions = new DecidedSessions();

  /** @param connector not started. */
  constructor(connector: AgentConnection, { presenceOf, sessionOf }: LookUps) {
    this.connector = connector;
    this.presenceOf = presenceOf;
    this.sessionOf = sessionOf;
  }

  /** Starts connecting; the connector's state tells the progress. */
  start(): void {
    this.connector.on("delivery", (delivery) => {
      this.requests.received(delivery);
      this.decisions.received(delivery);
      this.queue.add(delivery);
    });
    this.connector.on("overflow", () => this.queue.countDropped());
    this.connector.on("state", ({ status }) => {
      if (status === "closed") this.queue.end();
    });
    this.connector.on("notice", (notice) => {
      if (notice.kind === "pending_sessions") this.requests.noticed(notice.sessions);
      if (notice.kind !== "decided_sessions") return;
      for (const session of this.decisions.noticed(notice.sessions)) this.queue.add(session);
    });
    void this.connector.start();
  }
}
