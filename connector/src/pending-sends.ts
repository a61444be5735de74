import type { ErrorCode, RelayError } from "./errors.ts";
import type { AckFrame } from "./frames.ts";
import type { Hold, Holds } from "./holds.ts";
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
  readonly type: string;
  readonly to: string;
  readonly draft: SendDraft;
  readonly notBefore: number | undefined;
  /** By performance.now(): the end of the time that the call has. */
  readonly deadline: number;
  readonly resolve: (ack: Acknowledged) => void;
  readonly reject: (error: RelayError) => void;
  /** Frees its timer and its listener. */
  readonly release: () => void;
}

/** A send without an answer. */
export class PendingSend {
  readonly id: string;
  readonly type: string;
  readonly to: string;
  draft: SendDraft;
  readonly notBefore: number | undefined;
  readonly deadline: number;
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

  constructor({ id, type, to, draft, notBefore, deadline, resolve, reject, release }: NewSend) {
    this.id = id;
    this.type = type;
    this.to = to;
    this.draft = draft;
    this.notBefore = notBefore;
    this.deadline = deadline;
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
  readonly #byTarget = new Map<string, Set<PendingSend>>();
  readonly #inFlight = new Set<PendingSend>();

  get size(): number {
    return this.#sends.size;
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
    const lane = this.#byTarget.get(send.to) ?? new Set();
    this.#byTarget.set(send.to, lane.add(send));
    return send;
  }

  remove(send: PendingSend): void {
    this.requeue(send);
    this.#sends.delete(send.id);
    const lane = this.#byTarget.get(send.to);
    lane?.delete(send);
    if (lane?.size === 0) this.#byTarget.delete(send.to);
    send.release();
  }

  /**
   * What is being drafted or held holds up what goes to the same agent after it, and nothing else: strangers may have no key for
   * long. Of what a hold lets out again one is in flight at a time, and of all holds at most half of `most`: what is refused again
   * and again leaves places for the rest.
   * @param most how many may be in flight.
   */
  firstWaiting(holds: Holds, most: number): PendingSend | undefined {
    return this.#firstOf(this.#sends.values(), holds, most);
  }

  /** Whether the first that waits for this target may go out. */
  mayGoTo(target: string, holds: Holds, most: number): boolean {
    for (const send of this.#byTarget.get(target) ?? []) {
      if (!send.isInFlight) return this.#firstOf([send], holds, most) !== undefined;
    }
    return false;
  }

  /**
   * What waits behind a hold for longer than its call has time, and that hold.
   * @param target of those to it alone.
   */
  *tooLate(holds: Holds, target?: string): Generator<[PendingSend, Hold]> {
    if (holds.isEmpty) return;
    const heldUp = new Map<string, Hold>();
    const sends = target === undefined ? this.#sends.values() : (this.#byTarget.get(target) ?? []);
    for (const send of sends) {
      if (send.isInFlight) continue;
      const last = lastOf([...holds.of(send), heldUp.get(send.to)]);
      if (last === undefined) continue;
      if (last.endsAt >= send.deadline) yield [send, last];
      else heldUp.set(send.to, last);
    }
  }

  markInFlight(send: PendingSend, signed: SignedEnvelope): void {
    send.signed = signed;
    send.isInFlight = true;
    this.#inFlight.add(send);
  }

  /** It is not in flight any more; it keeps its place in the order. */
  requeue(send: PendingSend): void {
    send.isInFlight = false;
    this.#inFlight.delete(send);
  }

  /** The connection on which they went out is gone, or was replaced: whether they were accepted is not known. */
  requeueAll(): void {
    for (const send of this.#inFlight) {
      send.isOutcomeUnknown = true;
      this.requeue(send);
    }
  }

  #firstOf(sends: Iterable<PendingSend>, holds: Holds, most: number): PendingSend | undefined {
    if (this.#inFlight.size >= most) return undefined;
    const trials = holds.isEmpty ? [] : [...this.#inFlight].filter((send) => holds.of(send).length > 0);
    const tried = new Set(trials.flatMap((send) => holds.of(send)));
    const mayTry = trials.length < Math.max(1, Math.floor(most / 2));
    const heldUp = new Set(trials.map(({ to }) => to));
    for (const send of sends) {
      if (send.isInFlight || heldUp.has(send.to)) continue;
      const isFree = holds.of(send).every((hold) => mayTry && hold.timer === undefined && !tried.has(hold));
      if (isFree && !send.isBeingDrafted) return send;
      heldUp.add(send.to);
    }
    return undefined;
  }
}

/** The one that ends last of those whose time runs. */
function lastOf(holds: readonly (Hold | undefined)[]): Hold | undefined {
  const running = holds.filter((hold): hold is Hold => hold?.timer !== undefined);
  return running.sort((a, b) => a.endsAt - b.endsAt).at(-1);
}
