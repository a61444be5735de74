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
  /** Delivered, and not known to be sent. */
  readonly #strangers = new Map<string, Entry>();
  #order = 0;

  get content(): LedgerContent {
    return {
      entries: [...this.#entries.values()],
      gaps: this.#gaps,
      guardLosses: this.#guardLosses,
      strangers: [...this.#strangers.keys()],
    };
  }

  entry(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  /**
   * @param connection any name that the sender's connection has for itself.
   * @param toldAt when it was, of what another process tells: lines of two processes come in any order.
   */
  sent(envelope: Frame, connection: string, toldAt?: number): void {
    const { id } = envelope;
    const entry = this.#entries.get(id) ?? { ...newEntry(envelope), deliveries: this.#takeStranger(id) };
    this.#entries.set(id, entry);
    entry.attempts.push({ ...this.#moment(toldAt), connection });
  }

  /** Takes every frame that a connection to a pod receives: acks, errors, deliveries; others are nothing to it. */
  received(frame: Frame, connection: string, pod: string): void {
    if (frame.frame === "deliver") this.delivered(frame.envelope, connection, pod);
    if (frame.frame === "ack" || frame.frame === "error") this.answered(frame.envelope_id, connection, answerOf(frame));
  }

  /** Envelopes made by the gateway, which names them itself, are known by the text that is in them. @param toldAt as of `sent`. */
  delivered(envelope: Frame, connection: string, pod: string, toldAt?: number): void {
    const { id, to: agent, payload } = envelope;
    const known = this.#entries.get(id) ?? this.#entries.get(payload?.message ?? payload?.purpose);
    const entry = known ?? this.#strangers.get(id) ?? newEntry(envelope);
    if (known === undefined) this.#strangers.set(id, entry);
    entry.deliveries.push({ ...this.#moment(toldAt), connection, agent, copy: `${id} ${pod}` });
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
  gap(agent?: string): (toldAt?: number) => void {
    const gap: Gap = { agent, from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.#gaps.push(gap);
    return (toldAt = performance.now()) => {
      gap.to = Math.min(gap.to, toldAt);
    };
  }

  /**
   * Redis lost what it held of envelopes to these agents, or to all: what came before may come again.
   * @param since what was accepted before is not lost.
   */
  guardLost(agents?: readonly string[], since = Number.NEGATIVE_INFINITY): void {
    this.#guardLosses.push({ at: performance.now(), since, agents });
  }

  /** What was told in another order is in the order of its times. */
  #moment(toldAt?: number): Pick<Attempt, "at" | "order"> {
    this.#order += 1;
    return { at: toldAt ?? performance.now(), order: toldAt ?? this.#order };
  }

  #takeStranger(id: string): Delivery[] {
    const deliveries = this.#strangers.get(id)?.deliveries ?? [];
    this.#strangers.delete(id);
    return deliveries;
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

/** A promise of the relay that was broken. */
export interface Violation {
  readonly kind:
    | "delivered twice"
    | "accepted twice"
    | "promised and lost"
    | "out of order"
    | "delivered though refused"
    | "delivered to another"
    | "never sent";
  /** Of the envelope. */
  readonly id: string;
}

/** When something happened, and happened again. */
type Repeat = readonly [number, number];

/** How long after its ack an envelope may still be on its way, and be lost with what dies then. */
const ON_ITS_WAY_MS = 500;
/** No replica takes over sooner: what comes in until then stems from before the loss. */
const TAKEN_OVER_AFTER_MS = 1000;
/** Answers that leave open whether the envelope was accepted. */
const OPEN_CODES: readonly string[] = ["unavailable"];

/**
 * Every way in which the relay broke its word, given what lived: nothing is delivered twice, or twice taken for new, but
 * over a loss of the guard, and there by the same pod only on one Redis; nothing that was acked as deliverable is lost while both ends and the bus lived; what one
 * connection sent to one target arrives in order; nothing is delivered that was refused or that nobody sent.
 */
export function violations(content: LedgerContent): Violation[] {
  const { entries, gaps, guardLosses, strangers } = content;
  const name = (kind: Violation["kind"], broken: (entry: Entry) => boolean): Violation[] =>
    entries.filter(broken).map(({ id }) => ({ kind, id }));
  return [
    ...name("delivered twice", (entry) => isDeliveredTwice(entry, guardLosses)),
    ...name("accepted twice", (entry) => !areExplained(entry, timesAccepted(entry), guardLosses)),
    ...name("promised and lost", (entry) => isLost(entry, gaps)),
    ...name(
      "delivered though refused",
      ({ attempts, deliveries }) => deliveries.length > 0 && candidates(attempts).length === 0,
    ),
    ...name("delivered to another", ({ to, deliveries }) => deliveries.some(({ agent }) => agent !== to)),
    ...outOfOrder(entries).map((id) => ({ kind: "out of order" as const, id })),
    ...strangers.map((id) => ({ kind: "never sent" as const, id })),
  ];
}

/** A pod knows what it delivered, whatever a part of a cluster forgot. */
function isDeliveredTwice(entry: Entry, guardLosses: readonly GuardLoss[]): boolean {
  const ofOneRedis = guardLosses.filter(({ agents }) => agents === undefined);
  const byPod = Map.groupBy(entry.deliveries, ({ copy }) => copy);
  return (
    !areExplained(entry, timesDelivered(entry), guardLosses) ||
    [...byPod.values()].some(
      (ofPod) =>
        !areExplained(
          entry,
          ofPod.map(({ at }) => at),
          ofOneRedis,
        ),
    )
  );
}

/** Envelopes that were delivered or taken for new once more, as they may be over a loss of the guard. */
export function forgotten({ entries, guardLosses }: LedgerContent): Entry[] {
  return entries.filter((entry) =>
    [timesDelivered(entry), timesAccepted(entry)].some((times) =>
      repeatsAmong(times).some((repeat) => isOverLoss(entry, repeat, guardLosses)),
    ),
  );
}

/** Whether each repeat of something that is to happen once came over a loss of what was known of the time before. */
function areExplained(entry: Entry, times: readonly number[], guardLosses: readonly GuardLoss[]): boolean {
  return repeatsAmong(times).every((repeat) => isOverLoss(entry, repeat, guardLosses));
}

/** A loss costs a repeat of what came before it, and was not known elsewhere, and none of what came for the first time afterwards. */
function isOverLoss({ to }: Entry, [before, again]: Repeat, guardLosses: readonly GuardLoss[]): boolean {
  return guardLosses.some(
    ({ at, since, agents }) =>
      (agents === undefined || (to !== undefined && agents.includes(to))) &&
      since <= before &&
      before < at + TAKEN_OVER_AFTER_MS &&
      again >= at,
  );
}

function repeatsAmong(times: readonly number[]): Repeat[] {
  return times.slice(1).map((again, n) => [times[n] as number, again]);
}

function timesDelivered({ deliveries }: Entry): number[] {
  return deliveries.map(({ at }) => at);
}

/** In the order of the answers, which is not that of the sendings. */
function timesAccepted(entry: Entry): number[] {
  return acceptancesOf(entry)
    .map(({ at }) => at)
    .sort((one, other) => one - other);
}

function isLost(entry: Entry, gaps: readonly Gap[]): boolean {
  const promise = promiseOf(entry);
  if (promise === undefined || entry.deliveries.length > 0) return false;
  const concerns = ({ agent }: Gap) => agent === undefined || agent === entry.to;
  return !gaps.some((gap) => concerns(gap) && gap.from < promise.answer.at + ON_ITS_WAY_MS && gap.to > promise.at);
}

/** The sendings that can have brought about a delivery: the accepted one if it is known, else those left open. */
function candidates(attempts: readonly Attempt[]): Attempt[] {
  const accepted = attempts.filter(({ answer }) => answer?.accepted && !answer.duplicate);
  if (accepted.length > 0) return accepted;
  return attempts.filter(
    ({ answer }) => answer === undefined || (!answer.accepted && OPEN_CODES.includes(answer.code)),
  );
}

/** A decision without an answer its pod takes to the requester again, whenever that can be reached. */
function isRepeatedByPod(type: string, attempts: readonly Attempt[]): boolean {
  const isOpen = ({ answer }: Attempt) => answer?.accepted === false && OPEN_CODES.includes(answer.code);
  return (type === "session.approve" || type === "session.reject") && attempts.some(isOpen);
}

/**
 * Ids of envelopes that arrived behind a later one of the same connection. A delivery is laid to the earliest sending
 * before it that explains it: over a loss of the guard a later sending may be accepted, too. One that may stem from either of two connections tells nothing, and so does a change of the
 * target's connection: order is promised between two connections.
 */
function outOfOrder(entries: readonly Entry[]): string[] {
  const arrivals = entries.flatMap(({ id, type, to, attempts, deliveries: [delivery] }) => {
    if (delivery === undefined || isRepeatedByPod(type, attempts)) return [];
    const sendings = candidates(attempts.filter(({ order }) => order < delivery.order));
    const connections = new Set(sendings.map(({ connection }) => connection));
    return connections.size === 1 ? [{ id, sendings, delivery, to }] : [];
  });
  arrivals.sort((a, b) => a.delivery.order - b.delivery.order);
  const latest = new Map<string, number>();
  return arrivals.flatMap(({ id, sendings, delivery, to }) => {
    const pair = [sendings[0]?.connection, to, delivery.connection].join(" ");
    const last = latest.get(pair) ?? Number.NEGATIVE_INFINITY;
    const sending = sendings.find(({ order }) => order > last);
    if (sending === undefined) return [id];
    latest.set(pair, sending.order);
    return [];
  });
}
