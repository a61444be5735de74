import { isCredentialKey } from "relay-protocol/intake/credential-step.ts";
import { isRefusal, type Refusal } from "relay-protocol/intake/refusal.ts";
import type { Candidate, ShapedEnvelope, VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import type { EnvelopeVerifier } from "relay-runtime/verification/envelope-verifier.ts";

/** The arrival of an envelope. */
export interface Arrival {
  /** Monotonic ms. */
  readonly cameAt: number;
  /** True if the connection owned the sender that the envelope names. */
  readonly wasOwned: boolean;
}

/** The part of an envelope that is known so far: its text, its refusal, or its content. */
export type About = string | Refusal | ShapedEnvelope;

interface Entry {
  readonly arrival: Arrival;
  about: About;
  /**
   * Called while the envelope is the head. Returns undefined while its signatures are being checked, or its key may
   * still come.
   */
  judge: () => Refusal | VerifiedEnvelope | undefined;
}

const notYet = () => undefined;

/** An envelope whose checks wait for the answer to a register, which may bring its key. */
export interface WaitingEnvelope {
  readonly text: string;
  readonly keyId: string;
  /** The sender that the envelope names. Empty if it is not an agent id. */
  readonly agent: string;
}

export interface VerificationQueueOptions {
  readonly verifier: EnvelopeVerifier;
  /** Handles the head of the queue. False keeps it there until the next `advance`. */
  readonly handle: (result: Refusal | VerifiedEnvelope, arrival: Arrival) => boolean;
  /** Checks the head if it waits for its key. Returns undefined while it must wait; this answer must be cheap. */
  readonly recheck: (waiting: WaitingEnvelope) => Refusal | Candidate | undefined;
  /** A fault of the relay has ended this envelope. */
  readonly failed: (about: About, err: unknown) => void;
  /** Called after each `advance`. */
  readonly advanced: () => void;
}

/**
 * The envelopes of one connection between parsing and acceptance. The queue checks signatures in parallel. It hands
 * over verified and refused envelopes in the order of arrival. Source: docs/protocol.md#frames.
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
    const entry: Entry = { arrival, about: candidate, judge: notYet };
    this.#entries.push(entry);
    this.#verify(entry, candidate);
  }

  /** Adds an envelope whose key an earlier register may bring. */
  pushWaiting(waiting: WaitingEnvelope, arrival: Arrival): void {
    const entry: Entry = { arrival, about: waiting.text, judge: () => this.#recheck(entry, waiting) };
    this.#entries.push(entry);
    this.advance();
  }

  /** Hands over envelopes from the head, until one is not verified yet or `handle` keeps it. */
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
    const settle = (judge: Entry["judge"]) => {
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

  /**
   * Drops a head that fails, because it would fail again. @returns false if the head is not verified yet, or is kept.
   */
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
    const result = head.judge();
    if (result === undefined) return false;
    const isDone = this.#options.handle(result, head.arrival);
    // The queue judges an envelope once, even if it hands it over several times.
    if (!isDone) head.judge = () => result;
    return isDone;
  }

  #recheck(entry: Entry, waiting: WaitingEnvelope): Refusal | VerifiedEnvelope | undefined {
    const candidate = this.#options.recheck(waiting);
    if (candidate === undefined) return undefined;
    entry.judge = notYet;
    this.#verify(entry, candidate);
    return entry.judge();
  }
}

/**
 * The key and agent for which an earlier register may bring a credential. Until that register has an answer, the pod
 * must not refuse the envelope.
 */
export function awaitedKeyOf(checked: Refusal | Candidate): Omit<WaitingEnvelope, "text"> | undefined {
  if (isRefusal(checked)) {
    const { credentialKey: keyId, from: agent = "" } = checked;
    return keyId === undefined ? undefined : { keyId, agent };
  }
  const { entry, envelope } = checked;
  const isOthers = isCredentialKey(entry.keyId) && !entry.mayAct(envelope.from);
  return isOthers ? { keyId: entry.keyId, agent: envelope.from } : undefined;
}
