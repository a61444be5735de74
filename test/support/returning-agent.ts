import { CLOSE_CODES } from "@agent-relay/shared/contract/errors.ts";
import { type AgentKey, AgentSocket, type Fields, type Frame, signed } from "./agent.ts";
import { until } from "./until.ts";

const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 2000;
const FINAL_CODES: readonly number[] = Object.values(CLOSE_CODES)
  .filter(({ reconnect }) => !reconnect)
  .map(({ code }) => code);

export interface ReturningAgentOptions {
  readonly url: string;
  readonly id: string;
  readonly key: AgentKey;
  readonly heartbeatMs: number;
  /** Told of every frame. */
  readonly received?: (frame: Frame) => void;
}

/** An agent that means to stay online: it registers, sends heartbeats, and comes back when its connection ends. */
export class ReturningAgent {
  readonly id: string;
  /** Ms from the end of each connection to the register that was acknowledged on a later one. */
  readonly absences: number[] = [];
  readonly #options: ReturningAgentOptions;
  #socket: AgentSocket | undefined;
  #runs = false;
  #online = false;
  #failures = 0;
  #awaySince: number | undefined;
  #toldToWaitMs: number | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;

  constructor(options: ReturningAgentOptions) {
    this.id = options.id;
    this.#options = options;
  }

  /** Resolves when the agent is registered. */
  async start(): Promise<this> {
    this.#runs = true;
    this.#connect();
    await until(`${this.id} is registered`, () => this.isOnline, 10_000);
    return this;
  }

  async stop(): Promise<void> {
    this.#runs = false;
    clearTimeout(this.#next);
    await this.#socket?.close();
  }

  /** Registered on the present connection. */
  get isOnline(): boolean {
    return this.#online;
  }

  /** Sends a signed envelope. Only while online. */
  send(type: string, fields: Fields = {}): Frame {
    const envelope = signed(this.#options.key, { type, from: this.id, ...fields });
    this.#socket?.send(envelope);
    return envelope;
  }

  #connect(): void {
    const socket = new AgentSocket(this.#options.url);
    this.#socket = socket;
    socket.socket.on("message", (data: Buffer) => this.#receive(JSON.parse(data.toString())));
    socket.socket.on("close", (code: number) => this.#closed(code));
  }

  #receive(frame: Frame): void {
    if (frame.frame === "hello") this.send("agent.register");
    if (frame.frame === "ack" && frame.type === "agent.register") this.#registered();
    if (frame.frame === "error" && !this.#online) this.#registerAgain(frame);
    if (frame.notice === "draining") this.#toldToWaitMs = frame.reconnect_after_ms;
    this.#options.received?.(frame);
  }

  #registered(): void {
    this.#online = true;
    this.#failures = 0;
    this.#heartbeat = setInterval(() => this.send("agent.heartbeat"), this.#options.heartbeatMs);
    if (this.#awaySince !== undefined) this.absences.push(performance.now() - this.#awaySince);
    this.#awaySince = undefined;
  }

  #registerAgain({ retry_after_ms }: Frame): void {
    this.#next = setTimeout(() => this.send("agent.register"), retry_after_ms ?? FIRST_BACKOFF_MS);
  }

  #closed(code: number): void {
    clearInterval(this.#heartbeat);
    clearTimeout(this.#next);
    if (this.#online) this.#awaySince = performance.now();
    this.#online = false;
    if (!this.#runs || FINAL_CODES.includes(code)) return;
    this.#next = setTimeout(() => this.#connect(), this.#toldToWaitMs ?? this.#backoffMs());
    this.#toldToWaitMs = undefined;
  }

  /** Doubles with each failure; half of it is chance, so that agents do not come in step. */
  #backoffMs(): number {
    const longest = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS);
    this.#failures += 1;
    return longest * (0.5 + Math.random() / 2);
  }
}
