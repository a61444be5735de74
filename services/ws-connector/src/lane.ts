import { isRefusal, type Refusal } from "@agent-relay/shared/intake/refusal.ts";
import { type Candidate, conclude, type VerifiedEnvelope } from "@agent-relay/shared/intake/steps.ts";
import type { Verifier } from "@agent-relay/shared/signing/verifier.ts";

interface Slot {
  result: Refusal | VerifiedEnvelope | undefined;
}

/**
 * The envelopes of one connection between signature and acceptance, in the order they came: signatures are checked side
 * by side, but what they let through goes on in order. Source: protocol, section 6, "Order".
 */
export class Lane {
  readonly #slots: Slot[] = [];
  readonly #verifier: Verifier;
  readonly #take: (result: Refusal | VerifiedEnvelope) => boolean;
  readonly #moved: () => void;
  #draining = false;

  /**
   * @param take handles the head of the lane; false keeps it there until the next `drain`.
   * @param moved told whenever the lane has been drained as far as it goes.
   */
  constructor(verifier: Verifier, take: (result: Refusal | VerifiedEnvelope) => boolean, moved: () => void) {
    this.#verifier = verifier;
    this.#take = take;
    this.#moved = moved;
  }

  get length(): number {
    return this.#slots.length;
  }

  push(candidate: Refusal | Candidate): void {
    const slot: Slot = { result: undefined };
    this.#slots.push(slot);
    const settle = (result: Refusal | VerifiedEnvelope) => {
      slot.result = result;
      this.drain();
    };
    if (isRefusal(candidate)) {
      settle(candidate);
      return;
    }
    const { entry, canonical, envelope } = candidate;
    this.#verifier.verify(entry.key, canonical, envelope.sig, (valid) => settle(conclude(candidate, valid)));
  }

  /** Hands on what stands ready at the head. */
  drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    let head = this.#slots[0]?.result;
    while (head !== undefined && this.#take(head)) {
      this.#slots.shift();
      head = this.#slots[0]?.result;
    }
    this.#draining = false;
    this.#moved();
  }
}
