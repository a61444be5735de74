import type { ErrorCode, ErrorDetails } from "./errors.ts";
import type { AckFrame } from "./frames.ts";
import type { SignedEnvelope } from "./signer.ts";
import { SortedList } from "./sorted-list.ts";
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
  readonly reject: (error: unknown) => void;
  /** Frees its timer and its listener. */
  readonly release: () => void;
}

/** Why sends go out again later. */
export type HoldCode = "unavailable" | "rate_limited" | "not_registered";

/** While its time runs, nothing goes out under it; then one envelope at a time, until one is answered otherwise. */
export interface Hold {
  readonly code: HoldCode;
  /** What the relay said. */
  readonly details: ErrorDetails;
  /** By performance.now(). */
  readonly endsAt: number;
  /** Undefined once its time is over. */
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** The sends that one refusal may hold: all of the agent, those of a kind, or those to a target. */
export class Scope {
  readonly name: string;
  hold: Hold | undefined;
  /** How many of its sends are trials. */
  trials = 0;
  readonly sends = new SortedList<PendingSend>((a, b) => a.deadline - b.deadline || a.order - b.order);

  constructor(name: string) {
    this.name = name;
  }
}

export type Scopes = readonly [all: Scope, kind: Scope, target: Scope];

/** A send without an answer. */
export class PendingSend {
  readonly id: string;
  readonly type: string;
  readonly to: string;
  draft: SendDraft;
  readonly notBefore: number | undefined;
  readonly deadline: number;
  readonly resolve: (ack: Acknowledged) => void;
  readonly reject: (error: unknown) => void;
  readonly release: () => void;
  readonly scopes: Scopes;
  /** Of the calls. */
  readonly order: number;
  /**
   * As it went out, and as it goes out again: an id is signed once. Whatever a relay answers, it may keep what it got, and of
   * two signatures with different times a recipient may have forgotten the one when the other comes.
   */
  signed: SignedEnvelope | undefined;
  /** Its draft is being made. */
  isBeingDrafted = false;
  /** Sent on the current connection, and not answered yet. */
  isInFlight = false;
  /** In flight, and it went out under a hold. */
  isTrial = false;
  /** It went out before, and whether it was accepted then is not known. */
  isOutcomeUnknown = false;
  /** Why it waits to go out again, where the relay said so. */
  refusal: ErrorCode | undefined;

  constructor(fields: NewSend, scopes: Scopes, order: number) {
    const { id, type, to, draft, notBefore, deadline, resolve, reject, release } = fields;
    this.id = id;
    this.type = type;
    this.to = to;
    this.draft = draft;
    this.notBefore = notBefore;
    this.deadline = deadline;
    this.resolve = resolve;
    this.reject = reject;
    this.release = release;
    this.scopes = scopes;
    this.order = order;
  }

  get holds(): Hold[] {
    return this.scopes.flatMap(({ hold }) => hold ?? []);
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

/** What goes to one target. */
interface Lane {
  /** What is not in flight. */
  readonly waiting: SortedList<PendingSend>;
  /** The first of that, unless its draft or something to its target keeps it back. */
  head: PendingSend | undefined;
  /** The heads that it is among. */
  heads: SortedList<PendingSend> | undefined;
}

/** The sends without an answer, in the order of their calls. */
export class PendingSends {
  readonly #sends = new Map<string, PendingSend>();
  readonly #lanes = new Map<string, Lane>();
  /** Those under the same holds together: by kind, and whether there is a hold of their target. */
  readonly #heads = new Map<string, SortedList<PendingSend>>();
  readonly #inFlight = new Set<PendingSend>();
  #trials = 0;
  #added = 0;

  get size(): number {
    return this.#sends.size;
  }

  all(): PendingSend[] {
    return [...this.#sends.values()];
  }

  get(id: string): PendingSend | undefined {
    return this.#sends.get(id);
  }

  add(fields: NewSend, scopes: Scopes): PendingSend {
    this.#added += 1;
    const send = new PendingSend(fields, scopes, this.#added);
    this.#sends.set(send.id, send);
    for (const { sends } of scopes) sends.add(send);
    this.#wait(send);
    return send;
  }

  remove(send: PendingSend): void {
    this.requeue(send);
    this.#sends.delete(send.id);
    for (const { sends } of send.scopes) sends.delete(send);
    this.#waitNoMore(send);
    if (send.scopes[2].sends.items.length === 0) this.#lanes.delete(send.to);
    send.release();
  }

  /**
   * What is being drafted or held holds up what goes to the same agent after it, and nothing else: strangers may have no key for
   * long. Of what a hold lets out again one is in flight at a time, and of all holds at most half of `most`: what is refused again
   * and again leaves places for the rest.
   * @param most how many may be in flight.
   */
  firstWaiting(most: number): PendingSend | undefined {
    if (this.#inFlight.size >= most) return undefined;
    const mayTry = this.#trials < Math.max(1, Math.floor(most / 2));
    const isOpen = ({ hold, trials }: Scope) =>
      hold === undefined || (mayTry && hold.timer === undefined && trials === 0);
    let first: PendingSend | undefined;
    for (const { items } of this.#heads.values()) {
      const [head] = items;
      if (head === undefined || (first !== undefined && first.order < head.order)) continue;
      if (head.scopes.every(isOpen)) first = head;
    }
    return first;
  }

  /** What keeps a send back, or what goes to its target before it. */
  holdsOf(send: PendingSend): Hold[] {
    const first = this.#lanes.get(send.to)?.waiting.items[0];
    return first === undefined || first.order >= send.order ? send.holds : [...send.holds, ...first.holds];
  }

  markInFlight(send: PendingSend, signed: SignedEnvelope): void {
    send.signed = signed;
    send.isInFlight = true;
    this.#inFlight.add(send);
    if (send.holds.length > 0) this.#countTrial(send, 1);
    this.#waitNoMore(send);
  }

  /** It is not in flight any more; it keeps its place in the order. */
  requeue(send: PendingSend): void {
    if (!send.isInFlight) return;
    send.isInFlight = false;
    this.#inFlight.delete(send);
    if (send.isTrial) this.#countTrial(send, -1);
    this.#wait(send);
  }

  /** The connection on which they went out is gone, or was replaced: whether they were accepted is not known. All holds have ended. */
  requeueAll(): void {
    for (const send of this.#inFlight) {
      send.isOutcomeUnknown = true;
      this.requeue(send);
    }
    for (const target of this.#lanes.keys()) this.look(target);
  }

  /** To be called after every change of a hold of this target, and of a draft to it. */
  look(target: string): void {
    const lane = this.#lanes.get(target);
    if (lane === undefined) return;
    if (lane.head !== undefined) lane.heads?.delete(lane.head);
    const [first] = lane.waiting.items;
    lane.head = first !== undefined && mayLeadIn(first) ? first : undefined;
    if (lane.head === undefined) return;
    lane.heads = this.#headsLike(lane.head);
    lane.heads.add(lane.head);
  }

  #wait(send: PendingSend): void {
    const lane = this.#lanes.get(send.to) ?? { waiting: new SortedList(byOrder), head: undefined, heads: undefined };
    this.#lanes.set(send.to, lane);
    lane.waiting.add(send);
    this.look(send.to);
  }

  #waitNoMore(send: PendingSend): void {
    this.#lanes.get(send.to)?.waiting.delete(send);
    this.look(send.to);
  }

  #countTrial(send: PendingSend, change: 1 | -1): void {
    send.isTrial = change > 0;
    this.#trials += change;
    for (const scope of send.scopes) scope.trials += change;
  }

  #headsLike({ scopes }: PendingSend): SortedList<PendingSend> {
    const [, kind, target] = scopes;
    const name = `${kind.name} ${target.hold !== undefined}`;
    const heads = this.#heads.get(name) ?? new SortedList(byOrder);
    this.#heads.set(name, heads);
    return heads;
  }
}

/** Nothing overtakes what a hold let out again. */
function mayLeadIn({ isBeingDrafted, scopes: [, , { hold, trials }] }: PendingSend): boolean {
  return !isBeingDrafted && trials === 0 && hold?.timer === undefined;
}

function byOrder(a: PendingSend, b: PendingSend): number {
  return a.order - b.order;
}
