import type { Clock } from "./clock.ts";
import { type ErrorCode, type ErrorDetails, RelayError, retryOf } from "./errors.ts";
import type { AckFrame, ErrorFrame } from "./frames.ts";
import { Holds } from "./holds.ts";
import { MAX_IN_FLIGHT, RESEND_MARGIN_MS, RETRY_AFTER_MS, SEND_TIMEOUT_MS } from "./limits.ts";
import {
  type Acknowledged,
  type Hold,
  type NewSend,
  type PendingSend,
  PendingSends,
  type SendTerms,
} from "./pending-sends.ts";
import { refusalDetails } from "./refusal.ts";
import type { SignedEnvelope, Signer } from "./signer.ts";

/** The relay cannot say whether it took the envelope. */
const MAY_BE_ACCEPTED: ReadonlySet<ErrorCode> = new Set(["unavailable", "internal_error"]);

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
  readonly #holds = new Holds((scope) => {
    this.#pending.look(scope);
    void this.#flush();
  });
  #flushing = false;
  #end: RelayError | undefined;

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  /** True while an envelope that went out under this key may go out again. */
  needs(keyId: string): boolean {
    return this.#pending.all().some((send) => send.needs(keyId));
  }

  /** Resolves with the ack of the envelope; rejects with a RelayError, or with what drafting, signing or writing failed with. */
  add(envelope: Pick<NewSend, "id" | "type" | "to" | "draft">, terms: SendTerms): Promise<Acknowledged> {
    const { timeoutMs = SEND_TIMEOUT_MS, signal, notBefore } = terms;
    const { promise, resolve, reject } = Promise.withResolvers<Acknowledged>();
    const refusal = this.#refusal(signal);
    if (refusal !== undefined) {
      reject(refusal);
      return promise;
    }
    const abort = () => this.#fail(send, "aborted", { cause: signal?.reason });
    const timer = setTimeout(() => this.#timedOut(send), timeoutMs);
    const release = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const deadline = performance.now() + timeoutMs;
    const fields = { ...envelope, notBefore, deadline, resolve, reject, release };
    const send = this.#pending.add(fields, this.#holds.scopesOf(envelope));
    signal?.addEventListener("abort", abort);
    this.#rejectLate([send]);
    void this.#flush();
    return promise;
  }

  /** There is a connection: all that has no answer goes out on it, in order. */
  resume(writer: EnvelopeWriter): void {
    this.#holds.clear();
    this.#pending.requeueAll();
    this.#writer = writer;
    void this.#flush();
  }

  /** There is no connection. */
  pause(): void {
    this.#writer = undefined;
  }

  acknowledge(ack: AckFrame): void {
    const send = this.#pending.get(ack.envelopeId);
    if (send === undefined) return;
    this.#holds.answered(send);
    this.#remove(send);
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
    if (MAY_BE_ACCEPTED.has(code)) send.isOutcomeUnknown = true;
    if (code === "unavailable" || code === "rate_limited" || code === "not_registered") {
      send.refusal = code;
      if (code === "not_registered") this.#options.notRegistered();
      const late = this.#holds.begin(send, code, details, retryAfterMs);
      this.#pending.look(send.to);
      this.#rejectLate([send, ...late]);
    } else {
      this.#holds.answered(send);
      if (code === "clock_skew" && send.isOutcomeUnknown) this.#fail(send, "outcome_unknown");
      else this.#fail(send, code, { ...details, ...(isPassing(code, details) && { retryAfterMs }) });
    }
    void this.#flush();
    return true;
  }

  /** Rejects all pending sends, and all later ones. */
  end(error: RelayError): void {
    this.#end = error;
    this.#writer = undefined;
    this.#holds.clear();
    for (const send of this.#pending.all()) this.#fail(send, error.code, detailsOf(error));
  }

  /** Why no further send is taken. */
  #refusal(signal: AbortSignal | undefined): RelayError | undefined {
    if (this.#end !== undefined) return new RelayError(this.#end.code, detailsOf(this.#end));
    if (this.#pending.size >= this.#options.maxPending) return new RelayError("queue_full");
    return signal?.aborted ? new RelayError("aborted", { cause: signal.reason }) : undefined;
  }

  /** What a hold outlasts is rejected at once, as the relay refused what it holds. Without a connection the next one may end it. */
  #rejectLate(sends: readonly PendingSend[]): void {
    if (this.#writer === undefined) return;
    for (const send of sends) {
      const hold = send.isInFlight ? undefined : lastOf(this.#pending.holdsOf(send));
      if (hold !== undefined && hold.endsAt >= send.deadline) this.#failHeld(send, hold);
    }
  }

  #timedOut(send: PendingSend): void {
    const [hold] = this.#writer === undefined ? [] : this.#pending.holdsOf(send);
    if (hold === undefined) this.#fail(send, "timeout", this.#absence(send));
    else this.#failHeld(send, hold);
  }

  #failHeld(send: PendingSend, { code, details, endsAt }: Hold): void {
    const retryAfterMs = Math.ceil(Math.max(endsAt - performance.now(), RETRY_AFTER_MS));
    const known = send.mayBeAccepted ? " The target may have got it: ask it first." : "";
    this.#fail(send, code, { ...details, retryAfterMs, hint: `Wait ${retryAfterMs} ms, then try again.${known}` });
  }

  /** Why no answer can have come, where there is no connection. What the target may have got has the hint that says so. */
  #absence(send: PendingSend): ErrorDetails | undefined {
    if (this.#writer !== undefined) return undefined;
    const cause = this.#options.whyAway();
    const why = cause?.message ?? "There is no connection to the relay.";
    return { message: `The time for it is over. ${why}`, ...(send.mayBeAccepted ? {} : { hint: cause?.hint }), cause };
  }

  #fail(send: PendingSend, code: ErrorCode, details: ErrorDetails = {}): void {
    const outcome = send.mayBeAccepted ? "unknown" : "refused";
    this.#reject(send, new RelayError(code, { ...details, outcome, envelopeId: send.id }));
  }

  /** A fault that is no refusal reaches the caller as it is. */
  #failWith(send: PendingSend, error: unknown): void {
    if (error instanceof RelayError) {
      const { code, message, hint, errors } = error;
      this.#fail(send, code, { message, hint, errors, cause: error });
    } else {
      this.#reject(send, error);
    }
  }

  #reject(send: PendingSend, error: unknown): void {
    if (this.#pending.get(send.id) !== send) return;
    this.#remove(send);
    send.reject(error);
    void this.#flush();
  }

  #remove(send: PendingSend): void {
    this.#pending.remove(send);
    this.#holds.forgetUnused(send.scopes);
  }

  /** Sends what may go out, one after the other, but for what is being drafted: signing is asynchronous, and the order must hold. */
  async #flush(): Promise<void> {
    if (this.#flushing) return;
    this.#flushing = true;
    for (let send = this.#next(); send !== undefined; send = this.#next()) {
      try {
        await this.#transmit(send);
      } catch (error) {
        this.#failWith(send, error);
      }
    }
    this.#flushing = false;
  }

  #next(): PendingSend | undefined {
    return this.#pending.firstWaiting(this.#most);
  }

  /** How many may be in flight. */
  get #most(): number {
    return this.#writer === undefined ? 0 : Math.min(MAX_IN_FLIGHT, this.#writer.maxInFlight);
  }

  async #transmit(send: PendingSend): Promise<void> {
    const { draft } = send;
    if (typeof draft !== "string") return void this.#makeDraft(send, draft);
    const writer = this.#writer as EnvelopeWriter;
    let { signed } = send;
    if (signed !== undefined && !this.#canResend(signed, writer)) return this.#fail(send, send.lapse);
    signed ??= await writer.signer.sign(draft, send.notBefore);
    if (this.#writer !== writer || this.#pending.get(send.id) !== send) return;
    this.#pending.markInFlight(send, signed);
    writer.send(signed.text);
  }

  /** It goes out when it is there, unless another connection or a hold has come: then when it may. */
  async #makeDraft(send: PendingSend, make: () => Promise<string>): Promise<void> {
    send.isBeingDrafted = true;
    this.#pending.look(send.to);
    try {
      send.draft = await make();
    } catch (error) {
      this.#failWith(send, error);
    }
    send.isBeingDrafted = false;
    this.#pending.look(send.to);
    void this.#flush();
  }

  /** As it was signed: the relay takes it neither late nor under a key that has ended. */
  #canResend({ ts, keyId }: SignedEnvelope, writer: EnvelopeWriter): boolean {
    const maxAgeMs = writer.maxClockSkewMs - RESEND_MARGIN_MS;
    return this.#options.clock.now() - ts <= maxAgeMs && writer.accepts(keyId);
  }
}

/** The one that ends last of those whose time runs. */
function lastOf(holds: readonly Hold[]): Hold | undefined {
  const running = holds.filter(({ timer }) => timer !== undefined);
  return running.sort((a, b) => a.endsAt - b.endsAt).at(-1);
}

/** Whether the same may succeed later. */
function isPassing(code: ErrorCode, { retry = retryOf(code) }: ErrorDetails): boolean {
  return retry === "later";
}

/** Of what ended the connector, for one call. */
function detailsOf(cause: RelayError): ErrorDetails {
  const { message, hint, retry, closeCode } = cause;
  return { message, hint, retry, closeCode, cause };
}
