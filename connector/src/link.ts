import { spreadMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { type ErrorCode, finalClose, knownCode, RelayError } from "./errors.ts";
import type { Frame, HelloFrame, RefusalFrame } from "./frames.ts";
import { HELLO_WITHIN_MS } from "./limits.ts";
import { Pulse } from "./pulse.ts";
import { Socket } from "./socket.ts";

export type PresenceType = "agent.register" | "agent.heartbeat";

/** Why a link ended: `error` when there is no coming back. */
export interface LinkEnd {
  readonly reason: "unreachable" | "lost";
  readonly closeCode: number;
  readonly error: RelayError | undefined;
}

export interface LinkEvents {
  readonly registered: (link: Link) => void;
  /** What the link does not need for itself. */
  readonly frame: (link: Link, frame: Exclude<Frame, HelloFrame>) => void;
  /** A heartbeat was refused; the link goes on. */
  readonly troubled: (error: RelayError) => void;
  /** Once, and not after `close`. */
  readonly ended: (link: Link, end: LinkEnd) => void;
}

export interface LinkOptions {
  readonly url: string;
  readonly clock: Clock;
  /** Signs a register or heartbeat. */
  readonly presence: (type: PresenceType) => Promise<{ readonly id: string; readonly text: string }>;
  readonly events: LinkEvents;
}

const KEY_REFUSALS: ReadonlySet<ErrorCode> = new Set(["unknown_key", "bad_signature", "key_not_allowed"]);

/** One connection of the agent, from the first byte to the last: hello, register, heartbeats. */
export class Link {
  readonly #options: LinkOptions;
  readonly #socket: Socket;
  #openedAt = 0;
  #hello: HelloFrame | undefined;
  #pulse: Pulse | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Id of the register or heartbeat whose answer is due. */
  #asked: string | undefined;
  #registered = false;
  /** The clock was corrected since the last accepted register or heartbeat. */
  #corrected = false;
  #ended = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#socket = new Socket(options.url, {
      frame: (frame) => this.#receive(frame),
      closed: (code) => this.#end({ closeCode: code, error: finalClose(code) }),
    });
  }

  /** How old an envelope may be when it comes in here. */
  get maxClockSkewMs(): number {
    return (this.#hello as HelloFrame).maxClockSkewMs;
  }

  open(): void {
    this.#openedAt = Date.now();
    this.#timer = setTimeout(() => this.#end({}), HELLO_WITHIN_MS);
    this.#socket.open();
  }

  /** Sends an envelope. */
  send(text: string): void {
    this.#pulse?.asked();
    this.#socket.send(text);
  }

  /** Asks at once whether the connection still has its agent. */
  check(): void {
    this.#pulse?.beat();
  }

  /** Ends it without a word. Resolves when the socket is gone. */
  async close(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#pulse?.stop();
    await this.#socket.close();
  }

  #receive(frame: Frame): void {
    this.#pulse?.heard();
    const isAnswer = this.#asked !== undefined && "envelopeId" in frame && frame.envelopeId === this.#asked;
    if (frame.frame === "hello") this.#begin(frame);
    else if (frame.frame === "ack" && isAnswer) this.#accepted();
    else if (frame.frame === "error" && isAnswer) this.#refused(frame);
    else this.#pass(frame);
  }

  #pass(frame: Exclude<Frame, HelloFrame>): void {
    if (frame.frame === "error" && frame.serverTime !== undefined) this.#options.clock.measure(frame.serverTime);
    this.#options.events.frame(this, frame);
    // The close that follows may be lost on the way; a register in its place would take the agent back.
    if (frame.frame === "notice" && frame.notice.kind === "superseded") this.#end({ error: finalClose(4409) });
  }

  #begin(hello: HelloFrame): void {
    if (this.#hello !== undefined) return;
    clearTimeout(this.#timer);
    this.#hello = hello;
    if (hello.serverTime !== undefined) this.#options.clock.measure(hello.serverTime, this.#openedAt);
    this.#pulse = new Pulse({
      intervalMs: hello.heartbeatIntervalMs,
      beat: () => void this.#announce(),
      lost: () => this.#end({}),
    });
    this.#pulse.start();
    void this.#announce();
  }

  /** Sends a register until one is accepted, heartbeats after it. */
  async #announce(): Promise<void> {
    try {
      const { id, text } = await this.#options.presence(this.#registered ? "agent.heartbeat" : "agent.register");
      if (this.#ended) return;
      this.#asked = id;
      this.send(text);
    } catch (error) {
      this.#end({ error: error as RelayError });
    }
  }

  #accepted(): void {
    this.#asked = undefined;
    this.#corrected = false;
    if (this.#registered) return;
    this.#registered = true;
    this.#options.events.registered(this);
  }

  #refused(refusal: RefusalFrame): void {
    const { message, hint, serverTime, retryAfterMs } = refusal;
    const code = knownCode(refusal.code);
    const error = new RelayError(code, { message, hint, retryAfterMs });
    this.#asked = undefined;
    if (code === "clock_skew" && serverTime !== undefined && !this.#corrected) {
      this.#corrected = true;
      this.#options.clock.measure(serverTime);
      void this.#announce();
    } else if (code === "unavailable" || code === "rate_limited") {
      // A heartbeat needs no repeat: the next one is soon enough, and all connections met the same outage.
      if (!this.#registered) this.#timer = setTimeout(() => void this.#announce(), spreadMs(retryAfterMs));
    } else if (!this.#registered) {
      this.#end({ error });
    } else if (code === "not_registered") {
      this.#end({ error: finalClose(4409) });
    } else if (KEY_REFUSALS.has(code)) {
      this.#end({ error: finalClose(4403) });
    } else {
      this.#options.events.troubled(error);
    }
  }

  #end({ closeCode = 1006, error }: { closeCode?: number; error?: RelayError | undefined }): void {
    if (this.#ended) return;
    const reason = this.#hello === undefined ? "unreachable" : "lost";
    void this.close();
    this.#options.events.ended(this, { reason, closeCode, error });
  }
}
