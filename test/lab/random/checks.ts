import { type Attempt, type Entry, type LedgerContent, violations } from "../../support/ledger.ts";
import { isByGateway } from "../keyed-sends.ts";
import type { Forged } from "./driver.ts";

/** A promise that was broken, in words, and the envelope that it is about. */
export interface Breach {
  readonly what: string;
  readonly id: string;
}

/** Refusals that say nothing of the envelope. */
const NOT_NOW: readonly string[] = ["unavailable", "rate_limited"];
/** So long a delivery may take while the run goes on; in the end nothing more is under way. */
const UNDER_WAY_MS = 10_000;
/** The promise is one second; the rest is for a machine that does other things, too. */
const ANSWERED_WITHIN_MS = 3000;

interface Seen {
  readonly content: LedgerContent;
  readonly forged: readonly Forged[];
  /** Connections on which every envelope must have its answer in time. */
  readonly open: ReadonlySet<string>;
  /** Monotonic ms. */
  readonly now: number;
}

/** Everything that was broken, when nothing more is under way. */
export function breaches({ content, forged, open, now }: Seen): Breach[] {
  return [
    ...violations(content).map(({ kind, id }) => ({ what: kind, id })),
    ...wrongAnswers(content, forged),
    ...forged.flatMap((one) => acceptedForgery(content, one)),
    ...content.entries
      .filter((entry) => isUnanswered(entry, open, now))
      .map(({ id }) => ({ what: "never answered", id })),
  ];
}

/** What can be told while the run goes on. @param now monotonic ms. */
export function earlyBreaches(content: LedgerContent, forged: readonly Forged[], now: number): Breach[] {
  const sentAt = new Map(content.entries.map(({ id, attempts }) => [id, attempts.at(-1)?.at ?? now]));
  return breaches({ content, forged, open: new Set(), now }).filter(
    ({ what, id }) => what !== "promised and lost" || (sentAt.get(id) ?? now) < now - UNDER_WAY_MS,
  );
}

function isUnanswered({ attempts }: Entry, open: ReadonlySet<string>, now: number): boolean {
  return attempts.some(({ at, connection, answer }) => {
    return open.has(connection) && answer === undefined && at < now - ANSWERED_WITHIN_MS;
  });
}

/** A forged envelope is refused with its code, and never delivered. */
function acceptedForgery({ entries }: LedgerContent, { id, connection, code }: Forged): Breach[] {
  const entry = entries.find((one) => one.id === id);
  const attempts = entry?.attempts.filter((attempt) => attempt.connection === connection) ?? [];
  const isRefused = ({ answer }: Attempt) =>
    answer === undefined || (!answer.accepted && [code, "rate_limited"].includes(answer.code));
  const isDelivered = entry?.attempts.length === attempts.length && entry.deliveries.length > 0;
  if (attempts.every(isRefused) && !isDelivered) return [];
  return [{ what: `forged, and not refused with ${code}`, id }];
}

/** What an agent sends itself is refused only when it cannot be taken now; a repeat of what was accepted is a duplicate. */
function wrongAnswers({ entries, guardLosses }: LedgerContent, forged: readonly Forged[]): Breach[] {
  const stolen = new Set(forged.map(({ id, connection }) => `${id} ${connection}`));
  const lost = guardLosses.length > 0;
  return entries.flatMap(({ id, type, attempts }) => {
    const own = attempts.filter(({ connection }) => !stolen.has(`${id} ${connection}`));
    const refused = own.find(({ answer }) => answer?.accepted === false && !isDue(type, answer.code, lost));
    if (refused?.answer?.accepted === false) return [{ what: `refused with ${refused.answer.code}`, id }];
    const acceptedAt = Math.min(...own.map(({ answer }) => (answer?.accepted ? answer.at : Number.POSITIVE_INFINITY)));
    const isNew = ({ at, answer }: Attempt) => at > acceptedAt && answer?.accepted && !answer.duplicate;
    return !lost && own.some(isNew) ? [{ what: "repeated, and not a duplicate", id }] : [];
  });
}

/** An agent may be refused a heartbeat by a connection that another one took it from, and a decision by a new window. */
function isDue(type: string, code: string, windowLost: boolean): boolean {
  if (NOT_NOW.includes(code)) return true;
  if (type === "agent.heartbeat") return code === "not_registered";
  return windowLost && code === "unknown_session" && (type === "session.approve" || type === "session.reject");
}

/** The window's counters against the ledger; what may have been accepted without an ack leaves them room. */
export function miscounts(
  { entries }: LedgerContent,
  forged: readonly Forged[],
  counters: Readonly<Record<string, number>>,
): Breach[] {
  const fakes = new Set(forged.filter(({ code }) => code !== "not_registered").map(({ id }) => id));
  const genuine = entries.filter(({ id }) => !fakes.has(id));
  const groups: Readonly<Record<string, (entry: Entry) => boolean>> = {
    published_envelopes: ({ to }) => to !== undefined,
    websocket_accepted: ({ id }) => !isByGateway(id),
    simple_send_accepted: ({ id }) => isByGateway(id),
    session_requests: ({ type }) => type === "session.request",
  };
  return Object.entries(groups).flatMap(([name, belongs]) => {
    const group = genuine.filter(belongs);
    const accepted = group.filter(isAccepted).length;
    const perhaps = group.filter((entry) => !isAccepted(entry) && mayBeAccepted(entry)).length;
    const counted = counters[name] ?? 0;
    if (counted >= accepted && counted <= accepted + perhaps) return [];
    return [{ what: `${name} is ${counted}, and not ${accepted} to ${accepted + perhaps}`, id: "" }];
  });
}

function isAccepted({ attempts, deliveries }: Entry): boolean {
  return deliveries.length > 0 || attempts.some(({ answer }) => answer?.accepted);
}

function mayBeAccepted({ attempts }: Entry): boolean {
  return attempts.some(({ answer }) => answer === undefined || (!answer.accepted && answer.code === "unavailable"));
}
