import {
  type Attempt,
  acceptancesOf,
  type Entry,
  type Gap,
  type GuardLoss,
  type LedgerContent,
  promiseOf,
} from "./ledger.ts";

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
