import { setTimeout as delay } from "node:timers/promises";
import type { Connector } from "../../connector.ts";
import { Emitter } from "../../emitter.ts";
import { RelayError } from "../../errors.ts";
import { ignoreRejection } from "../../ignore-rejection.ts";
import type { AgentConnection } from "../../mcp/agent.ts";
import type {
  AskOptions,
  CallOptions,
  ConnectorEvents,
  ConnectorState,
  SendOptions,
  SessionProposal,
} from "../../types.ts";
import { errorWithAuthorities } from "../failure.ts";
import { FollowedConnection, findHolder } from "./client.ts";
import { onState } from "./events.ts";
import { ControlServer } from "./server.ts";
import type { ControlPlace } from "./socket.ts";

export interface SharedOptions {
  readonly place: ControlPlace;
  /** Take the agent's connection from whoever has it. */
  readonly takeOver: boolean;
  /** False: it believes others than the process that has the connection, and never uses that one's. */
  readonly mayFollow: boolean;
  /** Called when another process begins to use the connection, or this process that of another. */
  readonly shares: (holder: "this" | "other") => void;
  /** A connector of this process, not started. */
  readonly open: (takeOver: boolean) => Connector;
}

interface Own {
  readonly connector: Connector;
  readonly control: ControlServer;
}

const TURN_MS = 300;
/** How long after a refusal, and after each look in vain, this process looks for the one that has the connection. */
const LOOK_AGAIN_MS = [1000, 2000, 4000];
/** One that does not answer is as none: what this process may do is for the relay to say. */
const absent = () => undefined;
const SUPERSEDED: ReadonlySet<string | undefined> = new Set(["superseded", "superseded_elsewhere"]);

/** Whether another has the agent, and this process only looks for it. */
export function isSuperseded({ refusal }: AgentConnection): boolean {
  return SUPERSEDED.has(refusal?.code);
}

/**
 * The agent's connection, however many processes of this user use it: that of another process where one has it, else one of
 * this process, which others then share. When the process that has it ends, one of those that shared it connects.
 */
export class SharedConnection implements AgentConnection {
  readonly agent: string;
  readonly relayUrl: string;
  readonly #options: SharedOptions;
  readonly #emitter = new Emitter();
  readonly #closed = new AbortController();
  /** Pending while there is none. */
  #via = Promise.withResolvers<Connector | FollowedConnection>();
  #ended: Promise<void> | undefined;
  #state: ConnectorState = { status: "idle" };
  #since = new Date();
  #isShared = false;
  #refusal: RelayError | undefined;
  /** What answers over HTTP in place of the relay, until the agent is online. */
  #obstacle: RelayError | undefined;

  constructor(options: SharedOptions) {
    this.agent = options.place.agent;
    this.relayUrl = options.place.websocketUrl;
    this.#options = options;
  }

  get state(): ConnectorState {
    return this.#state;
  }

  get since(): Date {
    return this.#since;
  }

  get refusal(): RelayError | undefined {
    return this.#refusal ?? this.#obstacle;
  }

  get isShared(): boolean {
    return this.#isShared;
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
    return await this.#over((via) => via.send(to, payload, options));
  }

  async ask(to: string, payload: object, options?: AskOptions) {
    return await this.#over((via) => via.ask(to, payload, options));
  }

  async requestSession(to: string, proposal: SessionProposal, options?: CallOptions) {
    return await this.#over((via) => via.requestSession(to, proposal, options));
  }

  async approve(sessionId: string, to: string, options?: CallOptions) {
    return await this.#over((via) => via.approve(sessionId, to, options));
  }

  async reject(sessionId: string, to: string, reason?: string, options?: CallOptions) {
    return await this.#over((via) => via.reject(sessionId, to, reason, options));
  }

  async receipt(sessionId: string) {
    return await this.#over(async (via) => via.receipt(sessionId));
  }

  /** Once there is a connection. */
  async #over<T>(call: (via: Connector | FollowedConnection) => Promise<T>): Promise<T> {
    try {
      return await call(await this.#via.promise);
    } catch (error) {
      throw error instanceof RelayError ? errorWithAuthorities(error) : error;
    }
  }

  async #run(): Promise<void> {
    this.#setState({ status: "connecting" });
    let { takeOver } = this.#options;
    let looks = 0;
    while (!this.#closed.signal.aborted) {
      if (!takeOver && (await this.#follow())) {
        looks = 0;
        await this.#turn();
        continue;
      }
      if (this.#refusal !== undefined) {
        const waitMs = this.#options.mayFollow ? LOOK_AGAIN_MS[looks] : undefined;
        // Nobody of this user has the agent: it stays where it is.
        if (waitMs === undefined) break;
        looks += 1;
        await this.#pause(waitMs);
        continue;
      }
      const own = await this.#claim(takeOver);
      if (own === undefined) {
        await this.#turn();
        continue;
      }
      this.#refusal = await this.#hold(own);
      takeOver = false;
      if (this.#refusal === undefined || !SUPERSEDED.has(this.#refusal.code)) break;
      this.#lost();
    }
    const error = this.#refusal;
    ignoreRejection(this.#via.promise);
    this.#via.reject(error ?? new RelayError("closed"));
    this.#setState({ status: "closed", ...(error && { error }) });
  }

  /** Until the process that has the connection ends. @returns whether there was one. */
  async #follow(): Promise<boolean> {
    const { place, mayFollow } = this.#options;
    const followed = mayFollow ? await FollowedConnection.find(place).catch(absent) : undefined;
    if (followed === undefined) return false;
    this.#refusal = undefined;
    this.#use(followed);
    this.#share("other");
    const told = { state: (state: ConnectorState) => this.#setState(state), emitter: this.#emitter };
    await followed.follow(told, this.#closed.signal);
    this.#isShared = false;
    this.#lost();
    return true;
  }

  /** Several that followed wait for different times, so that one comes first and the others find it. */
  async #turn(): Promise<void> {
    await this.#pause(Math.random() * TURN_MS);
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closed.signal }).catch(() => {});
  }

  /**
   * Opens the control socket before it connects. Of several processes that do so at once none connects that finds another's. Two
   * that find each other both withdraw, and come again after different times. @returns undefined when there is another.
   */
  async #claim(takeOver: boolean): Promise<Own | undefined> {
    const { place, mayFollow, open } = this.#options;
    const connector = open(takeOver);
    const control = new ControlServer(connector, place, (count) => this.#followed(count));
    const path = await control.start();
    const other = mayFollow && !takeOver ? await findHolder(place, path).catch(absent) : undefined;
    if (other === undefined) return { connector, control };
    other.client.close();
    control.stop();
    return undefined;
  }

  /** Until the connection of this process ends. @returns why; undefined after `close`. */
  async #hold({ connector, control }: Own): Promise<RelayError | undefined> {
    const ended = Promise.withResolvers<RelayError | undefined>();
    onState(connector, (state) => (state.status === "closed" ? ended.resolve(state.error) : this.#setState(state)));
    connector.on("error", (error) => {
      if (error.code === "not_a_relay") this.#obstacle = error;
    });
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
    this.#isShared = false;
    await connector.close();
    return error;
  }

  /** @param count of the processes that share the connection of this one. */
  #followed(count: number): void {
    if (count === 0) this.#isShared = false;
    else if (!this.#isShared) this.#share("this");
  }

  #share(holder: "this" | "other"): void {
    this.#isShared = true;
    this.#options.shares(holder);
  }

  /** Calls wait for the next connection, or for the end. */
  #lost(): void {
    this.#via = Promise.withResolvers();
    this.#setState({ status: "connecting" });
  }

  /** Calls that wait go on over it, and so do later ones, also where one before it was not lost. */
  #use(via: Connector | FollowedConnection): void {
    this.#via.resolve(via);
    this.#via = Promise.withResolvers();
    this.#via.resolve(via);
  }

  #setState(state: ConnectorState): void {
    if ((state.status === "online") !== (this.#state.status === "online")) this.#since = new Date();
    if (state.status === "online" || state.status === "closed") this.#obstacle = undefined;
    this.#state = state;
    this.#emitter.emit("state", state);
  }
}
