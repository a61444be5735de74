import type { ErrorCode, RelayError } from "./errors.ts";
import type { AckFrame } from "./frames.ts";
import type { SignedEnvelope } from "./signer.ts";
import type { CallOptions } from "./types.ts";

/** Canonical text up to the payload; or what makes it once there is a connection, and may have to wait for a key. */
export type SendDraft = string | (() => Promise<string>);

/** The ack of an envelope, and the envelope as it was signed. */
export interface Acknowledged extends AckFrame {
  readonly text: string | undefined;
}

/** How a send is called. */
export interface SendTerms extends CallOptions {
  /** See `Signer.sign`. */
  readonly notBefore?: number | undefined;
}

export interface NewSend {
  readonly id: string;
  readonly to: string;
  readonly draft: SendDraft;
  readonly notBefore: number | undefined;
  readonly resolve: (ack: Acknowledged) => void;
  readonly reject: (error: RelayError) => void;
  /** Frees its timer and its listener. */
  readonly release: () => void;
}

/** A send without an answer. */
export class PendingSend {
  readonly id: string;
  readonly to: string;
  draft: SendDraft;
  readonly notBefore: number | undefined;
  readonly resolve: (ack: Acknowledged) => void;
  readonly reject: (error: RelayError) => void;
  readonly release: () => void;
  /**
   * As it went out, and as it goes out again: an id is signed once. Whatever a relay answers, it may keep what it got, and of
   * two signatures with different times a recipient may have forgotten the one when the other comes.
   */
  signed: SignedEnvelope | undefined;
  /** Its draft is being made. */
  isBeingDrafted = false;
  /** Sent on the current connection, and not answered yet. */
  isInFlight = false;
  /** It went out before, and whether it was accepted then is not known. */
  isOutcomeUnknown = false;
  /** Why it waits to go out again, where the relay said so. */
  refusal: ErrorCode | undefined;

  constructor({ id, to, draft, notBefore, resolve, reject, release }: NewSend) {
    this.id = id;
    this.to = to;
    this.draft = draft;
    this.notBefore = notBefore;
    this.resolve = resolve;
    this.reject = reject;
    this.release = release;
  }

  /** It was signed with this key: if it goes out again, then as it is. */
  needs(keyId: string): boolean {
    return this.signed?.keyId === keyId;
  }

  get mayBeAccepted(): boolean {
    return this.isInFlight || this.isOutcomeUnknown;
  }

  /** Why it is given up once it cannot go out again as it is. */
  get lapse(): ErrorCode {
    return this.isOutcomeUnknown || this.refusal === undefined ? "outcome_unknown" : this.refusal;
  }
}

/** The sends without an answer, in the order of their calls. */
export class PendingSends {
  readonly #sends = new Map<string, PendingSend>();
  #inFlight = 0;

  get size(): number {
    return this.#sends.size;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  all(): PendingSend[] {
    return [...this.#sends.values()];
  }

  get(id: string): PendingSend | undefined {
    return this.#sends.get(id);
  }

  add(fields: NewSend): PendingSend {
    const send = new PendingSend(fields);
    this.#sends.set(send.id, send);
    return send;
  }

  remove(send: PendingSend): void {
    this.requeue(send);
    this.#sends.delete(send.id);
    send.release();
  }

  /** What is being drafted holds up what goes to the same agent after it, and nothing else: strangers may have no key for long. */
  firstWaiting(): PendingSend | undefined {
    const heldUp = new Set<string>();
    for (const send of this.#sends.values()) {
      if (send.isInFlight || heldUp.has(send.to)) continue;
      if (!send.isBeingDrafted) return send;
      heldUp.add(send.to);
    }
    return undefined;
  }

  markInFlight(send: PendingSend, signed: SignedEnvelope): void {
    send.signed = signed;
    send.isInFlight = true;
    this.#inFlight += 1;
  }

  /** It is not in flight any more; it keeps its place in the order. */
  requeue(send: PendingSend): void {
    if (!send.isInFlight) return;
    send.isInFlight = false;
    this.#inFlight -= 1;
  }

  /** The connection on which they went out is gone, or was replaced: whether they were accepted is not known. */
  requeueAll(): void {
    for (const send of this.#sends.values()) {
      if (send.isInFlight) send.isOutcomeUnknown = true;
      this.requeue(send);
    }
  }
}
