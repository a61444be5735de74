import { spreadMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { type ErrorCode, type ErrorDetails, knownCode, RelayError } from "./errors.ts";
import type { AckFrame, RefusalFrame } from "./frames.ts";
import { MAX_IN_FLIGHT, RESEND_MARGIN_MS, SEND_TIMEOUT_MS } from "./limits.ts";
import { Pending, type PendingSend } from "./pending.ts";
import type { Signer } from "./signer.ts";
import type { CallOptions } from "./types.ts";

/** A connection that takes envelopes. */
export interface Wire {
  readonly maxClockSkewMs: number;
  send(text: string): void;
}

export interface OutboxOptions {
  readonly signer: Signer;
  readonly clock: Clock;
  readonly maxPending: number;
  /** The relay said that the connection does not have its agent. */
  readonly suspect: () => void;
}

/**
 * Sends that have no answer yet, in the order of their calls. What a lost connection or an outage left without answer
 * goes out again as it was signed: the relay's replay guard tells a repeat. Source: docs/protocol.md, "Replay".
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #pending = new Pending();
  #wire: Wire | undefined;
  #window = MAX_IN_FLIGHT;
  #hold: ReturnType<typeof setTimeout> | undefined;
  #pumping = false;
  #end: RelayError | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Resolves with the ack of the envelope; rejects with a RelayError. */
  add(id: string, draft: string, { timeoutMs = SEND_TIMEOUT_MS, signal }: CallOptions): Promise<AckFrame> {
    const { promise, resolve, reject } = Promise.withResolvers<AckFrame>();
    const refused = this.#end?.code ?? (this.#pending.size >= this.#options.maxPending ? "queue_full" : undefined);
    if (refused !== undefined || signal?.aborted) {
      reject(new RelayError(refused ?? "aborted", { cause: this.#end ?? signal?.reason }));
      return promise;
    }
    const abort = () => this.#fail(send, "aborted", { cause: signal?.reason });
    const timer = setTimeout(() => this.#fail(send, "timeout"), timeoutMs);
    const release = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const send = this.#pending.add({ id, draft, resolve, reject, release });
    signal?.addEventListener("abort", abort);
    void this.#pump();
    return promise;
  }

  /** A connection is there: all that has no answer goes out on it, in order. */
  resume(wire: Wire): void {
    this.#pending.recall();
    this.#wire = wire;
    this.#release();
  }

  /** There is no connection. */
  pause(): void {
    this.#wire = undefined;
  }

  acknowledge(ack: AckFrame): void {
    const send = this.#pending.get(ack.envelopeId);
    if (send === undefined) return;
    this.#window = Math.min(MAX_IN_FLIGHT, this.#window + 1);
    this.#pending.remove(send);
    send.resolve(ack);
    void this.#pump();
  }

  /** @returns false when the refusal is of no send that waits. */
  refuse(refusal: RefusalFrame): boolean {
    const { code: said, message, hint, retryAfterMs, envelopeId } = refusal;
    const send = this.#pending.get(envelopeId ?? "");
    if (send === undefined) return false;
    const code = knownCode(said);
    this.#pending.putBack(send);
    if (code === "unavailable" || code === "rate_limited" || code === "not_registered") {
      this.#again(send, code, retryAfterMs);
    } else if (code === "clock_skew" && send.isDoubtful) {
      this.#fail(send, "outcome_unknown");
    } else if (code === "clock_skew" && !send.isSignedAnew) {
      send.signAnew();
    } else {
      this.#fail(send, code, { message, hint });
    }
    void this.#pump();
    return true;
  }

  /** Rejects all that waits, and all that comes. */
  end(error: RelayError): void {
    this.#end = error;
    this.#wire = undefined;
    clearTimeout(this.#hold);
    const { message, hint, closeCode } = error;
    for (const send of this.#pending.all()) this.#fail(send, error.code, { message, hint, closeCode, cause: error });
  }

  /** Refused for the moment: the whole queue waits, so that nothing overtakes what has to go out again. */
  #again(send: PendingSend, code: "unavailable" | "rate_limited" | "not_registered", retryAfterMs: number): void {
    if (code === "unavailable") send.isDoubtful = true;
    if (code === "rate_limited") this.#window = 1;
    if (code === "not_registered") this.#options.suspect();
    clearTimeout(this.#hold);
    this.#hold = setTimeout(() => this.#release(), spreadMs(retryAfterMs));
  }

  #release(): void {
    clearTimeout(this.#hold);
    this.#hold = undefined;
    void this.#pump();
  }

  #fail(send: PendingSend, code: ErrorCode, details: ErrorDetails = {}): void {
    if (this.#pending.get(send.id) !== send) return;
    const outcome = send.mayBeAccepted ? "unknown" : "refused";
    this.#pending.remove(send);
    send.reject(new RelayError(code, { ...details, outcome, envelopeId: send.id }));
    void this.#pump();
  }

  /** Sends what may go out, one after the other: signing takes its time, and order must hold. */
  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    for (let send = this.#next(); send !== undefined; send = this.#next()) await this.#transmit(send);
    this.#pumping = false;
  }

  #next(): PendingSend | undefined {
    const isOpen = this.#wire !== undefined && this.#hold === undefined && this.#pending.inFlight < this.#window;
    return isOpen ? this.#pending.firstWaiting() : undefined;
  }

  async #transmit(send: PendingSend): Promise<void> {
    const wire = this.#wire as Wire;
    const { signer, clock } = this.#options;
    const isTooOld = send.signed !== undefined && clock.now() - send.signed.ts > wire.maxClockSkewMs - RESEND_MARGIN_MS;
    if (isTooOld && send.isDoubtful) return this.#fail(send, "outcome_unknown");
    if (isTooOld) send.signed = undefined;
    try {
      send.signed ??= await signer.sign(send.draft);
    } catch (cause) {
      return this.#fail(send, "invalid_key", { cause });
    }
    if (this.#wire !== wire || this.#pending.get(send.id) !== send) return;
    this.#pending.sent(send);
    wire.send(send.signed.text);
  }
}
