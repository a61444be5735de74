import type { Connector } from "../connector.ts";
import { RelayError } from "../errors.ts";
import { MAX_INBOX } from "../limits.ts";
import type { Receipt } from "../receipts/contract.ts";
import { type Arrival, DecidedSessions, type SessionOf, SessionRequests, senderOf } from "./known-sessions.ts";
import { MessageQueue, ReceivedMessages } from "./message-queue.ts";

/** What the tools use of a connector: the connection of their agent, of this process or of another one. */
export type AgentConnection = Pick<
  Connector,
  "agent" | "state" | "start" | "close" | "on" | "send" | "ask" | "requestSession" | "approve" | "reject"
> & {
  /** The address of the relay's websocket. */
  readonly relayUrl: string;
  /** Since when it is online, or is not, as this process knows it. */
  readonly since: Date;
  /** Another process of the agent on this machine has it, or uses it, too. */
  readonly isShared: boolean;
  /** Why it was refused, while it looks for the process of the agent that has the connection; or what answers in place of the relay. */
  readonly refusal?: RelayError | undefined;
  /** As of a connector; another process has to be asked for it. */
  receipt(sessionId: string): Receipt | Promise<Receipt>;
};

/**
 * Asks the relay for the presence of an agent. Resolves with its answer; rejects with an error that has `code`, `message`
 * and `hint`.
 */
type PresenceOf = (agentId: string, signal: AbortSignal) => Promise<unknown>;

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
