import { jitteredMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { type ErrorCode, finalClose, RelayError } from "./errors.ts";
import type { ErrorFrame, Frame, HelloFrame } from "./frames.ts";
import { Keepalive } from "./keepalive.ts";
import { ANSWER_WITHIN_MS, HELLO_WITHIN_MS, REGISTER_WITHIN_MS } from "./limits.ts";
import { type AttemptFailure, unreachable } from "./network-errors.ts";
import type { Presence, Registration } from "./presence.ts";
import { refusalOf } from "./refusal.ts";
import type { Signer } from "./signer.ts";
import { Socket } from "./socket.ts";

/** Why a connection ended. */
export interface ConnectionEnd {
  readonly reason: "unreachable" | "lost";
  readonly closeCode: number;
  /** Set when the connector must not reconnect. */
  readonly error: RelayError | undefined;
  /** `unreachable`, where no relay was reached. */
  readonly cause: RelayError | undefined;
}

export interface ConnectionEvents {
  readonly greeted: (hello: HelloFrame) => void;
  readonly registered: (connection: Connection) => void;
  /** Every frame but `hello` and the answers to registers and heartbeats. */
  readonly frame: (connection: Connection, frame: Exclude<Frame, HelloFrame>) => void;
  /** A heartbeat was refused, or the register of a renewed credential; the connection stays. */
  readonly presenceRefused: (error: RelayError) => void;
  /** Once, and not after `close`. */
  readonly ended: (connection: Connection, end: ConnectionEnd) => void;
}

export interface ConnectionOptions {
  readonly url: string;
  /** Whether the environment's proxy counts. */
  readonly usesProxy: boolean;
  readonly clock: Clock;
  readonly presence: Presence;
  readonly events: ConnectionEvents;
}

interface Ending {
  readonly closeCode?: number;
  readonly error?: RelayError | undefined;
  readonly failure?: AttemptFailure | undefined;
}

interface Asked {
  readonly id: string;
  readonly registration: Registration | undefined;
  /** By performance.now(). */
  readonly at: number;
}

/** A register comes again after them. */
const MOMENTARY: ReadonlySet<ErrorCode> = new Set(["unavailable", "rate_limited", "over_capacity", "internal_error"]);
/** Of a fault that is no RelayError, in making a register or heartbeat. */
const UNSIGNED = { message: "A register or heartbeat could not be signed.", hint: "The cause says why." };
const KEY_REFUSALS: ReadonlySet<ErrorCode> = new Set(["unknown_key", "bad_signature", "key_not_allowed"]);

/** One connection of the agent: hello, register, then heartbeats until its end. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #socket: Socket;
  #hello: HelloFrame | undefined;
  #keepalive: Keepalive | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The register or heartbeat that has no answer yet. */
  #asked: Asked | undefined;
  /** By performance.now(). */
  #openedAt = 0;
  #registered = false;
  /** The next to be sent is a register. */
  #mustRegister = true;
  /** The clock was corrected since the last accepted register or heartbeat. */
  #clockCorrected = false;
  #ended = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = new Socket(options.url, options.usesProxy, {
      frame: (frame) => this.#receive(frame),
      closed: (code, failure) => this.#end({ closeCode: code, error: finalClose(code), failure }),
    });
  }

  /** How old an envelope may be when the relay gets it. */
  get maxClockSkewMs(): number {
    return (this.#hello as HelloFrame).maxClockSkewMs;
  }

  /** Envelopes without an answer behind which a heartbeat still comes in time. */
  get maxInFlight(): number {
    return (this.#hello as HelloFrame).maxInFlight;
  }

  /** What signs on this connection. There is one once it is registered. */
  get signer(): Signer {
    return this.#options.presence.signer;
  }

  /** True for a key whose envelopes the relay takes on this connection now. */
  accepts(keyId: string): boolean {
    return this.#options.presence.accepts(keyId);
  }

  open(): void {
    this.#openedAt = performance.now();
    const silent = () => this.#end({ failure: this.#socket.silence ?? { code: "ETIMEDOUT" } });
    this.#timer = setTimeout(silent, HELLO_WITHIN_MS);
    this.#socket.open();
  }

  /** Sends an envelope. */
  send(text: string): void {
    this.#keepalive?.requestSent();
    this.#socket.send(text);
  }

  /** Asks the relay at once, by a heartbeat, whether this connection still owns the agent. */
  checkRegistration(): void {
    this.#keepalive?.heartbeatNow();
  }

  /** Presents the agent's renewed credential; envelopes go on meanwhile. Before `hello` there is no need. */
  registerAgain(): void {
    if (this.#hello === undefined) return;
    this.#mustRegister = true;
    void this.#sendPresence();
  }

  /** Ends it without the event `ended`. Resolves when the socket is gone. */
  async close(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#keepalive?.stop();
    await this.#socket.close();
  }

  #receive(frame: Frame): void {
    this.#keepalive?.frameReceived();
    const answered = "envelopeId" in frame ? frame.envelopeId : undefined;
    if (answered) this.#keepalive?.answered();
    const isAnswer = this.#asked !== undefined && answered === this.#asked.id;
    if (frame.frame === "hello") this.#greeted(frame);
    else if (frame.frame === "ack" && isAnswer) this.#presenceAccepted();
    else if (frame.frame === "error" && isAnswer) this.#presenceRefused(frame);
    else this.#forward(frame);
  }

  #forward(frame: Exclude<Frame, HelloFrame>): void {
    // To what it is the answer is not known here; one that took longer would have ended the connection.
    if (frame.frame === "error") this.#measure(frame.serverTime, performance.now() - ANSWER_WITHIN_MS);
    this.#options.events.frame(this, frame);
    // The close that follows may be lost on the way; reconnecting then would take the agent from its new connection.
    if (frame.frame === "notice" && frame.notice.kind === "superseded") this.#end({ error: finalClose(4409) });
  }

  #greeted(hello: HelloFrame): void {
    if (this.#hello !== undefined) return;
    clearTimeout(this.#timer);
    this.#hello = hello;
    this.#measure(hello.serverTime, this.#openedAt);
    this.#keepalive = new Keepalive({
      intervalMs: hello.heartbeatIntervalMs,
      sendHeartbeat: () => void this.#sendPresence(),
      timedOut: () => this.#end({}),
    });
    this.#keepalive.start();
    this.#options.events.greeted(hello);
    this.#timer = setTimeout(() => this.#end({}), REGISTER_WITHIN_MS);
    void this.#sendPresence();
  }

  /** Sends a register until one is accepted, and for a renewed credential; heartbeats else. */
  async #sendPresence(): Promise<void> {
    try {
      const type = this.#mustRegister ? "agent.register" : "agent.heartbeat";
      const { id, text, registration } = await this.#options.presence.sign(type, this.#hello?.connectionId);
      if (this.#ended) return;
      clearTimeout(this.#timer);
      this.#asked = { id, registration, at: performance.now() };
      this.#keepalive?.heartbeatSent();
      this.send(text);
    } catch (error) {
      this.#end({
        error: error instanceof RelayError ? error : new RelayError("invalid_key", { ...UNSIGNED, cause: error }),
      });
    }
  }

  #presenceAccepted(): void {
    const { presence } = this.#options;
    const { registration } = this.#asked ?? {};
    if (registration !== undefined) presence.accepted(registration);
    this.#asked = undefined;
    this.#clockCorrected = false;
    if (registration !== undefined && !presence.isComplete) return void this.#sendPresence();
    if (registration !== undefined) this.#mustRegister = false;
    if (this.#registered) return;
    this.#registered = true;
    this.#options.events.registered(this);
  }

  #presenceRefused(frame: ErrorFrame): void {
    const { serverTime, retryAfterMs } = frame;
    const error = refusalOf(frame);
    const { code } = error;
    const { registration, at: askedAt = performance.now() } = this.#asked ?? {};
    this.#asked = undefined;
    if (code === "clock_skew" && serverTime !== undefined && !this.#clockCorrected) {
      this.#clockCorrected = true;
      this.#measure(serverTime, askedAt);
      void this.#sendPresence();
    } else if (MOMENTARY.has(code)) {
      // A refused heartbeat is not repeated: the next one is soon enough, and every connection met the same outage.
      if (this.#mustRegister) this.#timer = setTimeout(() => void this.#sendPresence(), jitteredMs(retryAfterMs));
    } else if (this.#options.presence.isDispensable(registration)) {
      void this.#sendPresence();
    } else if (!this.#registered) {
      this.#end({ error });
    } else if (code === "not_registered") {
      this.#end({ error: finalClose(4409) });
    } else if (KEY_REFUSALS.has(code)) {
      this.#end({ error: finalClose(4403) });
    } else {
      // What an earlier register made known still holds.
      this.#mustRegister = false;
      this.#options.events.presenceRefused(error);
    }
  }

  /** @param askedAt by performance.now(). */
  #measure(serverTime: number | undefined, askedAt: number): void {
    if (serverTime !== undefined) this.#options.clock.measure(serverTime, performance.now() - askedAt);
  }

  #end({ closeCode = 1006, error, failure }: Ending): void {
    if (this.#ended) return;
    const isReached = this.#hello !== undefined;
    const cause = isReached ? undefined : unreachable(this.#options.url, failure);
    void this.close();
    this.#options.events.ended(this, { reason: isReached ? "lost" : "unreachable", closeCode, error, cause });
  }
}
