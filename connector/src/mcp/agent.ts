import type { RelayError } from "../errors.ts";
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
  readonly queue: MessageQueue<Arrival>;
  /** Messages that the model has seen. */
  readonly received: ReceivedMessages;
  readonly requests: SessionRequests;
  readonly decisions: DecidedSessions;
  /** Of the connection before this one, until this one is online. */
  #endedBy: RelayError | undefined;
  #wasOnline: boolean;

  /**
   * @param connector not started.
   * @param former the one before it: what the same agent received stays.
   */
  constructor(connector: AgentConnection, { presenceOf, sessionOf }: LookUps, former?: McpAgent) {
    this.connector = connector;
    const kept = former?.connector.agent === connector.agent ? former : undefined;
    this.queue = kept?.queue ?? new MessageQueue(MAX_INBOX, senderOf);
    this.received = kept?.received ?? new ReceivedMessages();
    this.requests = kept?.requests ?? new SessionRequests();
    this.decisions = kept?.decisions ?? new DecidedSessions();
    const { state, refusal } = former?.connector ?? {};
    this.#endedBy = state?.status === "closed" ? state.error : refusal;
    this.#wasOnline = former?.wasOnline ?? false;
    this.presenceOf = presenceOf;
    this.sessionOf = sessionOf;
  }

  /** Why there was no connection at the last attempt. */
  get endedBy(): RelayError | undefined {
    return this.connector.refusal ?? this.#endedBy;
  }

  /** Or one before it was. */
  get wasOnline(): boolean {
    return this.#wasOnline;
  }

  /** Starts connecting; the connector's state tells the progress. */
  start(): void {
    this.connector.on("delivery", (delivery) => {
      this.requests.received(delivery);
      this.decisions.received(delivery);
      this.queue.add(delivery);
    });
    this.connector.on("overflow", () => this.queue.countDropped());
    this.queue.begin();
    this.connector.on("state", ({ status }) => {
      if (status === "closed") this.queue.end();
      if (status !== "online") return;
      this.#wasOnline = true;
      this.#endedBy = undefined;
    });
    this.connector.on("notice", (notice) => {
      if (notice.kind === "pending_sessions") this.requests.noticed(notice.sessions);
      if (notice.kind !== "decided_sessions") return;
      for (const session of this.decisions.noticed(notice.sessions)) this.queue.add(session);
    });
    void this.connector.start();
  }
}
