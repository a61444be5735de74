import { setTimeout as delay } from "node:timers/promises";
import type { Connector } from "../../connector.ts";
import { Emitter } from "../../emitter.ts";
import { RelayError } from "../../errors.ts";
import { ignoreRejection } from "../../ignore-rejection.ts";
import type { AgentConnection } from "../../mcp/agent-connection.ts";
import type {
  AskOptions,
  CallOptions,
  ConnectorEvents,
  ConnectorState,
  SendOptions,
  SessionProposal,
} from "../../types.ts";
import { ControlServer } from "../control/server.ts";
import type { Io } from "../io.ts";
import type { SigningAgent } from "../key-file.ts";
import { connectToListener } from "../transports/listener.ts";
import { FollowedConnection } from "./followed-connection.ts";

export interface SharedOptions {
  readonly signing: SigningAgent;
  readonly websocketUrl: string;
  /** Take the agent's connection from whoever has it. */
  readonly takeOver: boolean;
  /** False: it believes others than the process that has the connection, and never uses that one's. */
  readonly mayFollow: boolean;
  /** A connector of this process, not started. */
  readonly open: (takeOver: boolean) => Connector;
  readonly io: Io;
}

interface Own {
  readonly connector: Connector;
  readonly control: ControlServer;
}

const TURN_MS = 300;
/** One that does not take this agent's key is as none: what this process may do is for the relay to say. */
const absent = () => undefined;
const SUPERSEDED: readonly string[] = ["superseded", "superseded_elsewhere"];

/**
 * The agent's connection, however many processes of this user use it: that of another process where one has it, else one of
 * this process, which others then share. When the process that has it ends, one of those that shared it connects.
 */
export class SharedConnection implements AgentConnection {
  readonly agent: string;
  readonly #options: SharedOptions;
  readonly #emitter = new Emitter();
  readonly #closed = new AbortController();
  /** Pending while there is none. */
  #via = Promise.withResolvers<Connector | FollowedConnection>();
  #ended: Promise<void> | undefined;
  #state: ConnectorState = { status: "idle" };

  constructor(options: SharedOptions) {
    this.agent = options.signing.agent;
    this.#options = options;
  }

  get state(): ConnectorState {
    return this.#state;
  }

  on<N extends keyof ConnectorEvents>(event: N, listener: (value: ConnectorEvents[N]) => unknown): () => void {
    return this.#emitter.on(event, listener);
  }

  /** Resolves at once; the state tells the progress. */
  async start(): Promise<void> {
    this.#ended ??= this.#run();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    ignoreRejection(this.#via.promise);
    this.#via.reject(new RelayError("closed"));
    await this.#ended;
  }

  async send(to: string, payload: object, options?: SendOptions) {
    return await (await this.#via.promise).send(to, payload, options);
  }

  async ask(to: string, payload: object, options?: AskOptions) {
    return await (await this.#via.promise).ask(to, payload, options);
  }

  async requestSession(to: string, proposal: SessionProposal, options?: CallOptions) {
    return await (await this.#via.promise).requestSession(to, proposal, options);
  }

  async approve(sessionId: string, to: string, options?: CallOptions) {
    return await (await this.#via.promise).approve(sessionId, to, options);
  }

  async reject(sessionId: string, to: string, reason?: string, options?: CallOptions) {
    return await (await this.#via.promise).reject(sessionId, to, reason, options);
  }

  async receipt(sessionId: string) {
    return await (await this.#via.promise).receipt(sessionId);
  }

  async #run(): Promise<void> {
    this.#setState({ status: "connecting" });
    let { takeOver } = this.#options;
    let error: RelayError | undefined;
    while (!this.#closed.signal.aborted) {
      if (!takeOver && (await this.#follow())) {
        error = undefined;
        await this.#turn();
        continue;
      }
      // Nobody of this user took the agent over: it stays where it is.
      if (error !== undefined) break;
      const own = await this.#claim(takeOver);
      if (own === undefined) {
        await this.#turn();
        continue;
      }
      error = await this.#hold(own);
      takeOver = false;
      if (error === undefined || !SUPERSEDED.includes(error.code)) break;
    }
    this.#setState({ status: "closed", ...(error && { error }) });
  }

  /** Until the process that has the connection ends. @returns whether there was one. */
  async #follow(): Promise<boolean> {
    const { signing, websocketUrl, mayFollow, io } = this.#options;
    const followed = mayFollow ? await FollowedConnection.find(signing, websocketUrl, io).catch(absent) : undefined;
    if (followed === undefined) return false;
    this.#use(followed);
    const told = { state: (state: ConnectorState) => this.#setState(state), emitter: this.#emitter };
    await followed.follow(told, this.#closed.signal);
    this.#via = Promise.withResolvers();
    this.#setState({ status: "connecting" });
    return true;
  }

  /** Several that followed wait for different times, so that one comes first and the others find it. */
  async #turn(): Promise<void> {
    await delay(Math.random() * TURN_MS, undefined, { signal: this.#closed.signal }).catch(() => {});
  }

  /**
   * Opens the control socket before it connects. Of several processes that do so at once none connects that finds another's: the
   * later one finds the earlier one's. @returns undefined when there is another.
   */
  async #claim(takeOver: boolean): Promise<Own | undefined> {
    const { signing, open, websocketUrl, mayFollow, io } = this.#options;
    const connector = open(takeOver);
    const control = new ControlServer(connector, signing, websocketUrl, io);
    const path = await control.start();
    const mayFind = mayFollow && !takeOver;
    const other = mayFind ? await connectToListener(signing, websocketUrl, io, path).catch(absent) : undefined;
    if (other === undefined) return { connector, control };
    other.close();
    control.stop();
    return undefined;
  }

  /** Until the connection of this process ends. @returns why; undefined after `close`. */
  async #hold({ connector, control }: Own): Promise<RelayError | undefined> {
    const ended = Promise.withResolvers<RelayError | undefined>();
    connector.on("state", (state) => (state.status === "closed" ? ended.resolve(state.error) : this.#setState(state)));
    connector.on("delivery", (delivery) => this.#emitter.emit("delivery", delivery));
    connector.on("notice", (notice) => this.#emitter.emit("notice", notice));
    connector.on("overflow", (overflow) => this.#emitter.emit("overflow", overflow));
    const close = () => void connector.close();
    this.#closed.signal.addEventListener("abort", close);
    if (this.#closed.signal.aborted) close();
    this.#use(connector);
    void connector.start();
    const error = await ended.promise;
    this.#closed.signal.removeEventListener("abort", close);
    control.stop();
    await connector.close();
    return error;
  }

  #use(via: Connector | FollowedConnection): void {
    this.#via.resolve(via);
    this.#via = Promise.withResolvers();
    this.#via.resolve(via);
  }

  #setState(state: ConnectorState): void {
    this.#state = state;
    this.#emitter.emit("state", state);
  }
}
