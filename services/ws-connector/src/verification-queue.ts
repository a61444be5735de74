import { isCredentialKey } from "protocol/intake/credential-step.ts";
import { isRefusal, type Refusal } from "protocol/intake/refusal.ts";
import type { Candidate, ShapedEnvelope, VerifiedEnvelope } from "protocol/intake/steps.ts";
import type { EnvelopeVerifier, Judge } from "runtime/verification/envelope-verifier.ts";

/** How an envelope came in. */
export interface Arrival {
  /** Monotonic ms. */
  readonly cameAt: number;
  /** Whether its connection owned the sender that it names. */
  readonly wasOwned: boolean;
}

/** What is known of an envelope that is worked on. */
export type About = string | Refusal | ShapedEnvelope;

interface Entry {
  readonly arrival: Arrival;
  about: About;
  /** Undefined while the signatures are being checked, and of an envelope that waits for its key. */
  judge: Judge | undefined;
  /** Undefined until it is judged. */
  result: Refusal | VerifiedEnvelope | undefined;
  /** An envelope that waits for its key. */
  waiting: WaitingEnvelope | undefined;
}

/** An envelope that was not checked, since the register that brings its key has no answer yet. */
export interface WaitingEnvelope {
  readonly text: string;
  readonly keyId: string;
  /** The sender that it names; empty where that is no agent id. */
  readonly agent: string;
}

export interface VerificationQueueOptions {
  readonly verifier: EnvelopeVerifier;
  /** Is handed the head of the queue; false keeps it there until the next `advance`. */
  readonly handle: (result: Refusal | VerifiedEnvelope, arrival: Arrival) => boolean;
  /** Checks an envelope that was pushed to wait, once it is the head; undefined, at no cost, while it is still to wait. */
  readonly recheck: (waiting: WaitingEnvelope) => Refusal | Candidate | undefined;
  /** Is told of an envelope that a fault of the relay has ended. */
  readonly failed: (about: About, err: unknown) => void;
  /** Called after each `advance`. */
  readonly advanced: () => void;
}

/**
 * The envelopes of one connection between parsing and acceptance, in the order of arrival. Their signatures are checked
 * side by side; what passes, and what is refused, is handed over in order. Source: docs/protocol.md#frames.
 */
export class VerificationQueue {
  readonly #entries: Entry[] = [];
  readonly #options: VerificationQueueOptions;
  #advancing = false;

  constructor(options: VerificationQueueOptions) {
    this.#options = options;
  }

  get length(): number {
    return this.#entries.length;
  }

  push(candidate: Refusal | Candidate, arrival: Arrival): void {
    const entry = entryOf(arrival, candidate);
    this.#entries.push(entry);
    this.#verify(entry, candidate);
  }

  /** Adds an envelope whose key the register before it may bring. */
  pushWaiting(waiting: WaitingEnvelope, arrival: Arrival): void {
    this.#entries.push({ ...entryOf(arrival, waiting.text), waiting });
    this.advance();
  }

  /** Hands over, from the head on, whatever is verified, until `handle` keeps one. */
  advance(): void {
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      while (this.#handOverHead());
    } finally {
      this.#advancing = false;
      this.#options.advanced();
    }
  }

  #verify(entry: Entry, candidate: Refusal | Candidate): void {
    entry.about = candidate;
    const settle = (judge: Judge) => {
      entry.judge = judge;
      this.advance();
    };
    if (isRefusal(candidate)) {
      settle(() => candidate);
      return;
    }
    try {
      this.#options.verifier.verify(candidate, settle);
    } catch (err) {
      settle(() => {
        throw err;
      });
    }
  }

  /** False when the head is not verified yet or is kept. One that fails is dropped: it would fail again. */
  #handOverHead(): boolean {
    const head = this.#entries[0];
    if (head === undefined) return false;
    let isDone = true;
    try {
      isDone = this.#handle(head);
    } catch (err) {
      this.#options.failed(head.about, err);
    } finally {
      if (isDone) this.#entries.shift();
    }
    return isDone;
  }

  #handle(head: Entry): boolean {
    if (head.waiting !== undefined) this.#recheck(head, head.waiting);
    head.result ??= head.judge?.();
    return head.result !== undefined && this.#options.handle(head.result, head.arrival);
  }

  #recheck(entry: Entry, waiting: WaitingEnvelope): void {
    const candidate = this.#options.recheck(waiting);
    if (candidate === undefined) return;
    entry.waiting = undefined;
    this.#verify(entry, candidate);
  }
}

function entryOf(arrival: Arrival, about: About): Entry {
  return { arrival, about, judge: undefined, result: undefined, waiting: undefined };
}

/** The key, of which agent, that a register may bring with its credential: the envelope is not to be refused before. */
export function awaitedKeyOf(checked: Refusal | Candidate): Omit<WaitingEnvelope, "text"> | undefined {
  if (isRefusal(checked)) {
    const { credentialKey: keyId, from: agent = "" } = checked;
    return keyId === undefined ? undefined : { keyId, agent };
  }
  const { entry, envelope } = checked;
  const isOthers = isCredentialKey(entry.keyId) && !entry.mayAct(envelope.from);
  return isOthers ? { keyId: entry.keyId, agent: envelope.from } : undefined;
}
