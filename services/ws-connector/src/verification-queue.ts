import { isRefusal, type Refusal } from "protocol/intake/refusal.ts";
import { type Candidate, checkAfterSignature, type VerifiedEnvelope } from "protocol/intake/steps.ts";
import type { SignatureVerifier } from "runtime/verification/signature-verifier.ts";

interface Entry {
  /** Undefined while the signature is being checked. */
  result: Refusal | VerifiedEnvelope | undefined;
}

/**
 * The envelopes of one connection between parsing and acceptance, in the order of arrival. Their signatures are checked
 * side by side; what passes, and what is refused, is handed over in order. Source: docs/protocol.md#frames.
 */
export class VerificationQueue {
  readonly #entries: Entry[] = [];
  readonly #verifier: SignatureVerifier;
  readonly #handle: (result: Refusal | VerifiedEnvelope) => boolean;
  readonly #advanced: () => void;
  #advancing = false;

  /**
   * @param handle is handed the head of the queue; false keeps it there until the next `advance`.
   * @param advanced is called after each `advance`.
   */
  constructor(
    verifier: SignatureVerifier,
    handle: (result: Refusal | VerifiedEnvelope) => boolean,
    advanced: () => void,
  ) {
    this.#verifier = verifier;
    this.#handle = handle;
    this.#advanced = advanced;
  }

  get length(): number {
    return this.#entries.length;
  }

  push(candidate: Refusal | Candidate): void {
    const entry: Entry = { result: undefined };
    this.#entries.push(entry);
    const settle = (result: Refusal | VerifiedEnvelope) => {
      entry.result = result;
      this.advance();
    };
    if (isRefusal(candidate)) {
      settle(candidate);
      return;
    }
    const { canonical, envelope } = candidate;
    this.#verifier.verify(candidate.entry.key, canonical, envelope.sig, (valid) =>
      settle(checkAfterSignature(candidate, valid)),
    );
  }

  /** Hands over, from the head on, whatever is verified, until `handle` keeps one. */
  advance(): void {
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      while (this.#handOverHead());
    } finally {
      this.#advancing = false;
      this.#advanced();
    }
  }

  /** False when the head is not verified yet or is kept. One that cannot be handled is dropped: it would fail again. */
  #handOverHead(): boolean {
    const head = this.#entries[0]?.result;
    if (head === undefined) return false;
    let isDone = true;
    try {
      isDone = this.#handle(head);
    } finally {
      if (isDone) this.#entries.shift();
    }
    return isDone;
  }
}
