import { jitteredMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { type ErrorCode, type ErrorDetails, RelayError } from "./errors.ts";
import type { AckFrame, ErrorFrame } from "./frames.ts";
import { MAX_IN_FLIGHT, RESEND_MARGIN_MS, SEND_TIMEOUT_MS } from "./limits.ts";
import { type Acknowledged, type NewSend, type PendingSend, PendingSends, type SendTerms } from "./pending-sends.ts";
import { refusalDetails } from "./refusal.ts";
import type { SignedEnvelope, Signer } from "./signer.ts";

/** A registered connection, as far as the queue needs it. */
export interface EnvelopeWriter {
  /** How old an envelope may be when the relay gets it. */
  readonly maxClockSkewMs: number;
  /** Envelopes without an answer behind which a heartbeat still comes in time. */
  readonly maxInFlight: number;
  /** What signs on it: the key that was registered on it last. */
  readonly signer: Signer;
  /** True for a key whose envelopes the relay takes on it now. */
  accepts(keyId: string): boolean;
  send(text: string): void;
}

export interface SendQueueOptions {
  readonly clock: Clock;
  readonly maxPending: number;
  /** The relay said that the connection does not own the agent. */
  readonly notRegistered: () => void;
  /** Why there is no connection, where that is known. */
  readonly whyAway: () => RelayError | undefined;
}

/**
 * Sends that have no answer yet, in the order of their calls. What a lost connection, an outage or a rate left open goes out
 * again as it was signed, or not at all: relay and recipient recognise a repeat. Source: docs/protocol.md#replay.
 */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #pending = new PendingSends();
  #writer: EnvelopeWriter | undefined;
  /** How many may be in flight: one after a refusal because of a rate, then one more with each ack. */
  #allowed = MAX_IN_FLIGHT;
  /** While it runs, nothing is sent. */
  #holdTimer: ReturnType<typeof setTimeout> | undefined;
  #flushing = false;
  #end: RelayError | undefined;

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  /** True while an envelope that went out under this key may go out again. */
  needs(keyId: string): boolean {
    return this.#pending.all().some((send) => send.needs(keyId));
  }

  /** Resolves with the ack of the envelope; rejects with a RelayError. */
  add({ id, to, draft }: Pick<NewSend, "id" | "to" | "draft">, terms: SendTerms): Promise<Acknowledged> {
    const { timeoutMs = SEND_TIMEOUT_MS, signal, notBefore } = terms;
    const { promise, resolve, reject } = Promise.withResolvers<Acknowledged>();
    const refusal = this.#refusal(signal);
    if (refusal !== undefined) {
      reject(refusal);
      return promise;
    }
    const abort = () => this.#fail(send, "aborted", { cause: signal?.reason });
    const timer = setTimeout(() => this.#fail(send, "timeout", this.#absence(send)), timeoutMs);
    const release = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const send = this.#pending.add({ id, to, draft, notBefore, resolve, reject, release });
    signal?.addEventListener("abort", abort);
    void this.#flush();
    return promise;
  }

  /** There is a connection: all that has no answer goes out on it, in order. */
  resume(writer: EnvelopeWriter): void {
    this.#pending.requeueAll();
    this.#writer = writer;
    this.#endHold();
  }

  /** There is no connection. */
  pause(): void {
    this.#writer = undefined;
  }

  acknowledge(ack: AckFrame): void {
    const send = this.#pending.get(ack.envelopeId);
    if (send === undefined) return;
    this.#allowed = Math.min(MAX_IN_FLIGHT, this.#allowed + 1);
    this.#pending.remove(send);
    send.resolve({ ...ack, text: send.signed?.text });
    void this.#flush();
  }

  /** @returns false when no send with this id is pending. */
  refuse(error: ErrorFrame): boolean {
    const { retryAfterMs, envelopeId } = error;
    const send = this.#pending.get(envelopeId ?? "");
    if (send === undefined) return false;
    const { code, ...details } = refusalDetails(error);
    this.#pending.requeue(send);
    if (code === "unavailable" || code === "rate_limited" || code === "not_registered") {
      this.#retryLater(send, code, retryAfterMs);
    } else if (code === "clock_skew" && send.isOutcomeUnknown) {
      this.#fail(send, "outcome_unknown");
    } else {
      this.#fail(send, code, details);
    }
    void this.#flush();
    return true;
  }

  /** Rejects all pending sends, and all later ones. */
  end(error: RelayError): void {
    this.#end = error;
    this.#writer = undefined;
    clearTimeout(this.#holdTimer);
    for (const send of this.#pending.all()) this.#fail(send, error.code, detailsOf(error));
  }

  /** Why no further send is taken. */
  #refusal(signal: AbortSignal | undefined): RelayError | undefined {
    if (this.#end !== undefined) return new RelayError(this.#end.code, detailsOf(this.#end));
    if (this.#pending.size >= this.#options.maxPending) return new RelayError("queue_full");
    return signal?.aborted ? new RelayError("aborted", { cause: signal.reason }) : undefined;
  }

  /** Refused for the moment: the whole queue waits, so that nothing overtakes the envelope that goes out again. */
  #retryLater(send: PendingSend, code: "unavailable" | "rate_limited" | "not_registered", retryAfterMs: number): void {
    send.refusal = code;
    if (code === "unavailable") send.isOutcomeUnknown = true;
    if (code === "rate_limited") this.#allowed = 1;
    if (code === "not_registered") this.#options.notRegistered();
    clearTimeout(this.#holdTimer);
    this.#holdTimer = setTimeout(() => this.#endHold(), jitteredMs(retryAfterMs));
  }

  #endHold(): void {
    clearTimeout(this.#holdTimer);
    this.#holdTimer = undefined;
    void this.#flush();
  }

  /** Why no answer can have come, where there is no connection. What the target may have got has the hint that says so. */
  #absence(send: PendingSend): ErrorDetails | undefined {
    if (this.#writer !== undefined) return undefined;
    const cause = this.#options.whyAway();
    const why = cause?.message ?? "There is no connection to the relay.";
    return { message: `No answer came in time. ${why}`, ...(send.mayBeAccepted ? {} : { hint: cause?.hint }), cause };
  }

  #fail(send: PendingSend, code: ErrorCode, details: ErrorDetails = {}): void {
    if (this.#pending.get(send.id) !== send) return;
    const outcome = send.mayBeAccepted ? "unknown" : "refused";
    this.#pending.remove(send);
    send.reject(new RelayError(code, { ...details, outcome, envelopeId: send.id }));
    void this.#flush();
  }

  /** Sends what may go out, one after the other, but for what is being drafted: signing is asynchronous, and the order must hold. */
  async #flush(): Promise<void> {
    if (this.#flushing) return;
    this.#flushing = true;
    for (let send = this.#next(); send !== undefined; send = this.#next()) await this.#transmit(send);
    this.#flushing = false;
  }

  #next(): PendingSend | undefined {
    if (this.#writer === undefined || this.#holdTimer !== undefined) return undefined;
    const most = Math.min(this.#allowed, this.#writer.maxInFlight);
    return this.#pending.inFlight >= most ? undefined : this.#pending.firstWaiting();
  }

  async #transmit(send: PendingSend): Promise<void> {
    const { draft } = send;
    if (typeof draft !== "string") return void this.#makeDraft(send, draft);
    const writer = this.#writer as EnvelopeWriter;
    let { signed } = send;
    if (signed !== undefined && !this.#canResend(signed, writer)) return this.#fail(send, send.lapse);
    try {
      signed ??= await writer.signer.sign(draft, send.notBefore);
    } catch (error) {
      return this.#failToMake(send, error);
    }
    if (this.#writer !== writer || this.#pending.get(send.id) !== send) return;
    this.#pending.markInFlight(send, signed);
    writer.send(signed.text);
  }

  /** It goes out when it is there, unless another connection or a hold has come: then when it may. */
  async #makeDraft(send: PendingSend, make: () => Promise<string>): Promise<void> {
    send.isBeingDrafted = true;
    try {
      send.draft = await make();
    } catch (error) {
      this.#failToMake(send, error);
    }
    send.isBeingDrafted = false;
    void this.#flush();
  }

  #failToMake(send: PendingSend, error: unknown): void {
    const { code, message, hint, errors } = error instanceof RelayError ? error : new RelayError("invalid_key");
    this.#fail(send, code, { message, hint, errors, cause: error });
  }

  /** As it was signed: the relay takes it neither late nor under a key that has ended. */
  #canResend({ ts, keyId }: SignedEnvelope, writer: EnvelopeWriter): boolean {
    const maxAgeMs = writer.maxClockSkewMs - RESEND_MARGIN_MS;
    return this.#options.clock.now() - ts <= maxAgeMs && writer.accepts(keyId);
  }
}

/** Of what ended the connector, for one call. */
function detailsOf(cause: RelayError): ErrorDetails {
  const { message, hint, retry, closeCode } = cause;
  return { message, hint, retry, closeCode, cause };
}
