import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { type AgentKey, AgentSocket, type Fields, type Frame, signed } from "./agent.ts";
import type { Ledger } from "./ledger.ts";
import { until } from "./until.ts";

const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 2000;
const FINAL_CODES: readonly number[] = Object.values(CLOSE_CODES)
  .filter(({ reconnect }) => !reconnect)
  .map(({ code }) => code);
/** Refusals after which the very same envelope is sent again. */
const TRY_AGAIN: readonly string[] = ["unavailable", "rate_limited"];

export interface ReturningAgentOptions {
  /** Asked anew for each connection when it is a function. */
  readonly url: string | (() => string);
  readonly id: string;
  readonly key: AgentKey;
  readonly heartbeatMs: number;
  /** Told of every frame. */
  readonly received?: (frame: Frame) => void;
  /** Written by the agent: all that it sends, with answers, and all that it receives. */
  readonly ledger?: Ledger;
}

/**
 * An agent that means to stay online: it registers, sends heartbeats, comes back when its connection ends, and sends an
 * envelope again, the very same, that was answered `unavailable` or not at all.
 */
export class ReturningAgent {
  readonly id: string;
  /** Ms from the end of each connection to the register that was acknowledged on a later one. */
  readonly absences: number[] = [];
  /** Code of every close. */
  readonly closes: number[] = [];
  readonly #options: ReturningAgentOptions;
  /** Sent, and neither acknowledged nor refused for good. */
  readonly #unsettled = new Map<string, Frame>();
  #socket: AgentSocket | undefined;
  #runs = false;
  #online = false;
  #registrations = 0;
  #failures = 0;
  #awaySince: number | undefined;
  #toldToWaitMs: number | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  #endAbsence: (() => void) | undefined;

  constructor(options: ReturningAgentOptions) {
    this.id = options.id;
    this.#options = options;
  }

  /**
   * Resolves when the agent was registered. May be called again after the agent stopped or was superseded, and while it
   * is online: the new connection then takes it over from the old one, which the relay closes.
   */
  async start(): Promise<this> {
    const before = this.#registrations;
    this.#runs = true;
    this.#online = false;
    clearInterval(this.#heartbeat);
    clearTimeout(this.#next);
    this.#connect();
    await until(`${this.id} is registered`, () => this.#registrations > before);
    return this;
  }

  /** Leaves: what is under way to the agent may be lost. */
  async stop(): Promise<void> {
    this.#runs = false;
    this.#endAbsence ??= this.#options.ledger?.gap(this.id);
    clearTimeout(this.#next);
    await this.#socket?.close();
  }

  /** Ends its connection without a goodbye, and does not come back. */
  abandon(): void {
    this.#runs = false;
    clearTimeout(this.#next);
    this.#socket?.socket.terminate();
  }

  /** Registered on the present connection. */
  get isOnline(): boolean {
    return this.#online;
  }

  /** How many envelopes have no final answer. */
  get unsettled(): number {
    return this.#unsettled.size;
  }

  /** Sends a signed envelope. Only while online. */
  send(type: string, fields: Fields = {}): Frame {
    const envelope = signed(this.#options.key, { type, from: this.id, ...fields });
    if (type.startsWith("agent.")) this.sendAgain(envelope);
    else this.repeat(envelope);
    return envelope;
  }

  /** Sends what may have been sent before, again and again until it has a final answer. */
  repeat(envelope: Frame): void {
    this.#unsettled.set(envelope.id, envelope);
    this.sendAgain(envelope);
  }

  /** Sends what was made before: a repeat, or what another made. */
  sendAgain(envelope: Frame): void {
    if (this.#socket?.closed !== undefined) return;
    this.#options.ledger?.sent(envelope, this.connection);
    this.#socket?.send(envelope);
  }

  /** Where the present connection goes. */
  get url(): string {
    return this.#socket?.socket.url ?? "";
  }

  /** The relay's name for the present connection. */
  get connection(): string {
    return this.#socket?.connectionId ?? "";
  }

  #connect(): void {
    const { url } = this.#options;
    const socket = new AgentSocket(typeof url === "string" ? url : url());
    this.#socket = socket;
    socket.socket.on("message", (data: Buffer) => this.#receive(socket, JSON.parse(data.toString())));
    socket.socket.on("close", (code: number) => this.#closed(socket, code));
  }

  #receive(socket: AgentSocket, frame: Frame): void {
    this.#options.ledger?.received(frame, socket.connectionId, socket.socket.url);
    if (socket !== this.#socket) return;
    if (frame.frame === "hello") this.send("agent.register");
    if (frame.frame === "ack" && frame.type === "agent.register") this.#registered();
    if (frame.frame === "error" && !this.#online) this.#registerAgain(frame);
    if (frame.notice === "draining") this.#toldToWaitMs = frame.reconnect_after_ms;
    this.#settle(frame);
    this.#options.received?.(frame);
  }

  #registered(): void {
    this.#online = true;
    this.#registrations += 1;
    this.#failures = 0;
    this.#endAbsence?.();
    this.#endAbsence = undefined;
    this.#heartbeat = setInterval(() => this.send("agent.heartbeat"), this.#options.heartbeatMs);
    if (this.#awaySince !== undefined) this.absences.push(performance.now() - this.#awaySince);
    this.#awaySince = undefined;
    for (const envelope of this.#unsettled.values()) this.sendAgain(envelope);
  }

  #registerAgain({ retry_after_ms }: Frame): void {
    this.#next = setTimeout(() => this.send("agent.register"), retry_after_ms ?? FIRST_BACKOFF_MS);
  }

  #settle({ frame, envelope_id, code, retry_after_ms }: Frame): void {
    const envelope = this.#unsettled.get(envelope_id);
    if (envelope === undefined) return;
    if (frame === "ack" || !TRY_AGAIN.includes(code)) {
      this.#unsettled.delete(envelope_id);
      return;
    }
    const socket = this.#socket;
    setTimeout(() => socket === this.#socket && this.sendAgain(envelope), retry_after_ms);
  }

  #closed(socket: AgentSocket, code: number): void {
    this.closes.push(code);
    if (socket !== this.#socket) return;
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

const TICK_MS = 20;
/** A client with so many envelopes unanswered sends no more for now, lest repeats become a load of their own. */
const MOST_UNSETTLED = 30;
/** Of what was sent so many are kept, to be sent again. */
const KEPT = 2000;

/** Messages between agents at a steady rate; what becomes of them stands in the agents' ledger. */
export class Exchange {
  readonly #agents: readonly ReturningAgent[];
  readonly #perSecond: number;
  /** What was sent last, the oldest first. */
  readonly #sent: { readonly sender: ReturningAgent; readonly envelope: Frame }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(agents: readonly ReturningAgent[], perSecond: number) {
    this.#agents = agents;
    this.#perSecond = perSecond;
  }

  start(): void {
    let sent = 0;
    const startedAt = performance.now();
    this.#timer = setInterval(() => {
      const due = ((performance.now() - startedAt) / 1000) * this.#perSecond;
      for (; sent < due; sent += 1) this.#sendOne();
    }, TICK_MS);
  }

  /** Every second agent sends again what it sent lately of these envelopes. Returns the ids of those. */
  repeat(ids: ReadonlySet<string>): string[] {
    const repeating = this.#agents.filter((agent, n) => n % 2 === 0 && agent.isOnline);
    const repeated = this.#sent.filter(({ sender, envelope }) => ids.has(envelope.id) && repeating.includes(sender));
    for (const { sender, envelope } of repeated) sender.repeat(envelope);
    return repeated.map(({ envelope }) => envelope.id);
  }

  /** Sends no more; resolves when agents that are online have a final answer to each of their envelopes. */
  async stop(withinMs?: number): Promise<void> {
    clearInterval(this.#timer);
    const isSettled = ({ isOnline, unsettled }: ReturningAgent) => !isOnline || unsettled === 0;
    await until("every envelope is answered", () => this.#agents.every(isSettled), withinMs);
  }

  /** Between two agents by chance; only an agent that is online sends, and whoever is meant may be away. */
  #sendOne(): void {
    const senders = this.#agents.filter(({ isOnline, unsettled }) => isOnline && unsettled < MOST_UNSETTLED);
    const sender = anyOf(senders);
    const target = anyOf(this.#agents.filter((agent) => agent !== sender));
    if (sender === undefined || target === undefined) return;
    const envelope = sender.send("message.send", { to: target.id, payload: { message: "exchanged" } });
    this.#sent.push({ sender, envelope });
    if (this.#sent.length > KEPT) this.#sent.shift();
  }
}

function anyOf<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)];
}
