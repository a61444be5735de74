import type { Frame } from "./agent.ts";

/** What the relay said of one sending of an envelope. `at` is monotonic ms throughout the ledger. */
export type Answer =
  | { readonly at: number; readonly accepted: true; readonly duplicate: boolean; readonly deliverable: boolean }
  | { readonly at: number; readonly accepted: false; readonly code: string };

/** One sending of an envelope; the very same envelope may be sent again. */
export interface Attempt {
  readonly at: number;
  /** The sender's connection. */
  readonly connection: string;
  /** Rises with each sending and each delivery. */
  readonly order: number;
  answer?: Answer;
}

export interface Delivery {
  readonly at: number;
  /** The connection that it came in on, and the agent that it came to. */
  readonly connection: string;
  readonly agent: string;
  /** Which envelope by which pod: a gateway makes another one of each request. */
  readonly copy: string;
  readonly order: number;
}

/** All that became of one envelope. */
export interface Entry {
  readonly id: string;
  readonly type: string;
  readonly from: string;
  /** Undefined for `agent.*`. */
  readonly to: string | undefined;
  readonly attempts: Attempt[];
  readonly deliveries: Delivery[];
}

/** A span in which something did not live that deliveries to an agent, or to anyone, need. */
export interface Gap {
  readonly agent: string | undefined;
  readonly from: number;
  to: number;
}

/** A moment in which replay guards forgot what was accepted last, or everything. */
export interface GuardLoss {
  readonly at: number;
  /** What was accepted before is still known. */
  readonly since: number;
  /**
   * Of envelopes to these agents, in a part of a cluster, where no pod delivers again what it delivered itself; undefined: to
   * anyone, of one Redis.
   */
  readonly agents: readonly string[] | undefined;
}

/** What the ledger holds, as `violations` reads it. */
export interface LedgerContent {
  readonly entries: readonly Entry[];
  readonly gaps: readonly Gap[];
  readonly guardLosses: readonly GuardLoss[];
  /** Ids that were delivered and that nobody sent. */
  readonly strangers: readonly string[];
}

/** Every envelope that agents sent: answers and deliveries, by id, in order. */
export class Ledger {
  readonly #entries = new Map<string, Entry>();
  readonly #gaps: Gap[] = [];
  readonly #guardLosses: GuardLoss[] = [];
  readonly #strangers: string[] = [];
  #order = 0;

  get content(): LedgerContent {
    return {
      entries: [...this.#entries.values()],
      gaps: this.#gaps,
      guardLosses: this.#guardLosses,
      strangers: this.#strangers,
    };
  }

  entry(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  /** @param connection any name that the sender's connection has for itself. */
  sent(envelope: Frame, connection: string): void {
    const { id } = envelope;
    const entry = this.#entries.get(id) ?? newEntry(envelope);
    this.#entries.set(id, entry);
    entry.attempts.push({ at: performance.now(), connection, order: this.#next() });
  }

  /** Takes every frame that a connection to a pod receives: acks, errors, deliveries; others are nothing to it. */
  received(frame: Frame, connection: string, pod: string): void {
    if (frame.frame === "deliver") this.#delivered(frame.envelope, connection, pod);
    if (frame.frame === "ack" || frame.frame === "error") this.answered(frame.envelope_id, connection, answerOf(frame));
  }

  /** Goes to the oldest sending on that connection that has no answer. */
  answered(id: string, connection: string, answer: Answer): void {
    const attempts = this.#entries.get(id)?.attempts ?? [];
    const asked = attempts.find((attempt) => attempt.connection === connection && attempt.answer === undefined);
    if (asked !== undefined) asked.answer = answer;
  }

  /**
   * Something that deliveries need does not live, until the function that is returned is called.
   * @param agent whose deliveries it can cost; undefined: everyone's.
   */
  gap(agent?: string): () => void {
    const gap: Gap = { agent, from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.#gaps.push(gap);
    return () => {
      gap.to = Math.min(gap.to, performance.now());
    };
  }

  /**
   * Redis lost what it held of envelopes to these agents, or to all: what came before may come again.
   * @param since what was accepted before is not lost.
   */
  guardLost(agents?: readonly string[], since = Number.NEGATIVE_INFINITY): void {
    this.#guardLosses.push({ at: performance.now(), since, agents });
  }

  /** Envelopes made by the gateway, which names them itself, are known by the text that is in them. */
  #delivered(envelope: Frame, connection: string, pod: string): void {
    const id = this.#entries.has(envelope.id) ? envelope.id : (envelope.payload.message ?? envelope.payload.purpose);
    const entry = this.#entries.get(id);
    if (entry === undefined) this.#strangers.push(envelope.id);
    const copy = `${envelope.id} ${pod}`;
    entry?.deliveries.push({ at: performance.now(), connection, agent: envelope.to, copy, order: this.#next() });
  }

  #next(): number {
    this.#order += 1;
    return this.#order;
  }
}

/** Acknowledged as delivered in realtime, and no repeat: the relay then owes a delivery. */
export function promiseOf(entry: Entry): (Attempt & { readonly answer: Answer }) | undefined {
  return entry.attempts.find(
    (attempt): attempt is Attempt & { readonly answer: Answer } =>
      attempt.answer?.accepted === true && !attempt.answer.duplicate && attempt.answer.deliverable,
  );
}

/** Answers that took an envelope for new: one, but for what Redis forgot. */
export function acceptancesOf({ attempts }: Entry): Answer[] {
  return attempts.flatMap(({ answer }) => (answer?.accepted && !answer.duplicate ? [answer] : []));
}

/** Counts of envelopes from agent to agent. */
export interface Tally {
  readonly sent: number;
  readonly acked: number;
  /** Acked as deliverable in realtime. */
  readonly promised: number;
  readonly delivered: number;
  /** Refusals, of which one envelope may have several. */
  readonly refused: number;
}

export function tally({ entries }: LedgerContent): Tally {
  const published = entries.filter(({ to }) => to !== undefined);
  const count = (holds: (entry: Entry) => boolean) => published.filter(holds).length;
  return {
    sent: published.length,
    acked: count(({ attempts }) => attempts.some(({ answer }) => answer?.accepted)),
    promised: count((entry) => promiseOf(entry) !== undefined),
    delivered: count(({ deliveries }) => deliveries.length > 0),
    refused: published.flatMap(({ attempts }) => attempts.filter(({ answer }) => answer?.accepted === false)).length,
  };
}

function newEntry({ id, type, from, to }: Frame): Entry {
  return { id, type, from, to, attempts: [], deliveries: [] };
}

function answerOf(frame: Frame): Answer {
  const at = performance.now();
  if (frame.frame === "error") return { at, accepted: false, code: frame.code };
  return {
    at,
    accepted: true,
    duplicate: frame.duplicate === true,
    deliverable: frame.target_delivery?.can_deliver_realtime === true,
  };
}
