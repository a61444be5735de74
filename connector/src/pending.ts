import type { RelayError } from "./errors.ts";
import type { AckFrame } from "./frames.ts";
import type { SignedEnvelope } from "./signer.ts";

export interface NewSend {
  readonly id: string;
  /** Canonical text up to the payload. */
  readonly draft: string;
  readonly resolve: (ack: AckFrame) => void;
  readonly reject: (error: RelayError) => void;
  /** Gives up its timer and its listener. */
  readonly release: () => void;
}

/** A send without answer. */
export class PendingSend {
  readonly id: string;
  readonly draft: string;
  readonly resolve: (ack: AckFrame) => void;
  readonly reject: (error: RelayError) => void;
  readonly release: () => void;
  signed: SignedEnvelope | undefined;
  /** On its way: sent, and neither answered nor called back. */
  isInFlight = false;
  /** It went out before, and what became of it then is not known: it must not be signed anew. */
  isDoubtful = false;
  /** It was signed a second time, after the clock was corrected. */
  isSignedAnew = false;

  constructor({ id, draft, resolve, reject, release }: NewSend) {
    this.id = id;
    this.draft = draft;
    this.resolve = resolve;
    this.reject = reject;
    this.release = release;
  }

  get mayBeAccepted(): boolean {
    return this.isInFlight || this.isDoubtful;
  }

  /** For one that was certainly not accepted. */
  signAnew(): void {
    this.signed = undefined;
    this.isSignedAnew = true;
  }
}

/** The sends without answer, in the order of their calls. */
export class Pending {
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
    this.putBack(send);
    this.#sends.delete(send.id);
    send.release();
  }

  firstWaiting(): PendingSend | undefined {
    for (const send of this.#sends.values()) if (!send.isInFlight) return send;
    return undefined;
  }

  sent(send: PendingSend): void {
    send.isInFlight = true;
    this.#inFlight += 1;
  }

  /** It is not on its way any more. */
  putBack(send: PendingSend): void {
    if (!send.isInFlight) return;
    send.isInFlight = false;
    this.#inFlight -= 1;
  }

  /** The connection on which they went out is gone, or was replaced: nobody knows what became of them. */
  recall(): void {
    for (const send of this.#sends.values()) {
      if (send.isInFlight) send.isDoubtful = true;
      this.putBack(send);
    }
  }
}
