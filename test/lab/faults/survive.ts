import { expect } from "@jest/globals";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import {
  type Answer,
  type Entry,
  forgotten,
  type LedgerContent,
  promiseOf,
  type Tally,
  tally,
  type Violation,
  violations,
} from "../../support/ledger.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import type { Fleet } from "../fleet.ts";

/** What an injection has come to. Times are monotonic ms. */
export interface Injected {
  /** Those who could not exchange while the fault lasted; they are back when each of them sent and received again. */
  readonly agents: readonly ReturningAgent[];
  readonly endedAt: number;
  /** When the service was back, where that is not told by envelopes between agents. */
  readonly backAt?: number;
}

/** One fault, as it is injected again and again while agents send messages. */
export interface Fault<F extends Fleet = Fleet> {
  readonly name: string;
  /** How often it is injected in the long run. */
  readonly times: number;
  /** Lets the fault begin, bite and end. It throws when the fault did not bite. */
  readonly inject: (fleet: F) => Promise<Injected>;
  /** How soon all is as before, by promise. */
  readonly backWithinMs?: number;
  /** Close codes that connections may end with; by default every connection outlives the fault. */
  readonly closes?: readonly number[];
  /** Whoever it touches has no one to answer while it lasts. */
  readonly silences?: true;
  /** Takes too long for `npm run test:ci`. */
  readonly isLong?: true;
  /** What an envelope may be refused with, besides `unavailable`: a connection that was just superseded is not registered. */
  readonly refusal?: ErrorCode;
}

/** The fault is over, for these agents. */
export function over(agents: readonly ReturningAgent[]): Injected {
  return { agents, endedAt: performance.now() };
}

/** How a fleet came through a fault: one line of the table. */
export interface Outcome extends Tally {
  readonly fault: string;
  /** How often it was injected. */
  readonly times: number;
  readonly violations: readonly Violation[];
  /** Envelopes that were taken for new once more, since Redis, or what was promoted, had forgotten them. */
  readonly forgotten: number;
  /** Ms from the first refusal of what concerns an agent until it was served again, for each agent and injection. */
  readonly unavailable: readonly number[];
  /** Ms from the end of each injection until all was as before; none of those that nobody felt. */
  readonly recoveries: readonly number[];
}

/** The promise, where nothing else keeps the machine busy; some answers may be later even then, and none much later. */
const ANSWERED_WITHIN_MS = 1000;
const LATE_SHARE = 0.1;
const LATEST_MS = 3000;
/** Beside other tests: less than a client waits for. */
const LATEST_AT_ALL_MS = 15_000;
/** When all have stopped, what is not delivered by then is lost. A test is to say so before its time is over. */
const UNDER_WAY_MS = 20_000;
/** Within one heartbeat interval of 15 s, and generous for these agents, whose own is 1 s. */
const BACK_WITHIN_MS = 10_000;
/** Beside other tests, where processes that are started anew wait for their turn. */
const BACK_AT_ALL_WITHIN_MS = 30_000;

interface Circumstances {
  times: number;
  /** What agents send each other all the time, in all. */
  perSecond: number;
  /** Whether these tests have the machine to themselves: beside others, how soon most answers come says nothing of the relay. */
  isAlone: boolean;
}

/** Injects a fault under traffic, and fails unless every promise is kept that holds during a fault and after it. */
export async function survive<F extends Fleet>(
  fleet: F,
  fault: Fault<F>,
  { times, perSecond, isAlone }: Circumstances,
): Promise<Outcome> {
  const { ledger } = fleet;
  const from = ledger.content.entries.length;
  const recoveries: number[] = [];
  const unavailable: number[] = [];
  fleet.startTraffic(perSecond);
  try {
    for (let n = 0; n < times; n += 1) {
      const once = await surviveOnce(fleet, fault, isAlone);
      recoveries.push(...once.recoveries);
      unavailable.push(...once.unavailable);
    }
  } catch (error) {
    await fleet.heal();
    await fleet.stopTraffic().catch(() => {});
    throw error;
  }
  await fleet.stopTraffic();
  const content = (): LedgerContent => ({ ...ledger.content, entries: ledger.content.entries.slice(from) });
  const isSettled = () => violations(content()).length === 0;
  await until("what was promised is delivered", isSettled, UNDER_WAY_MS).catch(() => {});
  return {
    fault: fault.name,
    times,
    ...tally(content()),
    violations: violations(content()),
    forgotten: forgotten(content()).length,
    unavailable,
    recoveries,
  };
}

/** No recovery when all was as before all the time. */
async function surviveOnce<F extends Fleet>(
  fleet: F,
  fault: Fault<F>,
  isAlone: boolean,
): Promise<Pick<Outcome, "recoveries" | "unavailable">> {
  const withinMs = isAlone ? BACK_WITHIN_MS : BACK_AT_ALL_WITHIN_MS;
  await exchanging(fleet, fleet.agents, performance.now(), withinMs);
  const closesBefore = fleet.agents.map(({ closes }) => closes.length);
  const endsBefore = fleet.unexpectedEnds.length;
  const mark = fleet.ledger.content.entries.length;
  const injected = await fault.inject(fleet);
  const backAt = injected.backAt ?? (await exchanging(fleet, injected.agents, injected.endedAt, withinMs));

  const entries = fleet.ledger.content.entries.slice(mark);
  const answered = waits(entries, fault, injected);
  const late = answered.filter((ms) => ms > ANSWERED_WITHIN_MS);
  if (isAlone) expect(late.length).toBeLessThanOrEqual(LATE_SHARE * answered.length);
  expect(Math.max(0, ...late)).toBeLessThan(isAlone ? LATEST_MS : LATEST_AT_ALL_MS);
  expect(refusalCodes(entries).filter((code) => code !== "unavailable" && code !== fault.refusal)).toEqual([]);
  const closes = fleet.agents.flatMap((agent, n) => agent.closes.slice(closesBefore[n]));
  expect(closes.filter((code) => !fault.closes?.includes(code))).toEqual([]);
  expect(fleet.unexpectedEnds.slice(endsBefore)).toEqual([]);
  await fleet.stage.heal();
  const unavailable = unavailabilities(entries, injected.agents);
  if (injected.agents.length === 0 && injected.backAt === undefined) return { recoveries: [], unavailable };
  const recovery = backAt - injected.endedAt;
  if (isAlone) expect(recovery).toBeLessThanOrEqual(fault.backWithinMs ?? withinMs);
  return { recoveries: [recovery], unavailable };
}

/** Ms that answers took that came during the fault; so far, where none has come on a connection that is there. */
function waits(entries: readonly Entry[], fault: Pick<Fault, "silences">, { agents, endedAt }: Injected): number[] {
  const mute = new Set(fault.silences ? agents.map(({ id }) => id) : []);
  const open = new Set(agents.filter(({ isOnline }) => isOnline).map(({ connection }) => connection));
  const now = performance.now();
  return entries
    .filter(({ from }) => !mute.has(from))
    .flatMap(({ attempts }) => attempts)
    .filter(({ at, connection, answer }) => at <= endedAt && (answer !== undefined || open.has(connection)))
    .map(({ at, answer }) => (answer?.at ?? now) - at);
}

function refusalCodes(entries: readonly Entry[]): string[] {
  const answers = entries.flatMap(({ attempts }) => attempts.map(({ answer }) => answer));
  return answers.flatMap((answer) => (answer?.accepted === false ? [answer.code] : []));
}

/** What the ledger says of a fault while it lasts: whether it bites, and whom. */

type Agents = readonly Pick<ReturningAgent, "id">[];

/** Tells answers apart. @param sentAt when that was sent. */
type Holds = (answer: Answer, sentAt: number) => boolean;

/** What was sent, since then, and had such an answer. */
function answeredSince({ ledger }: Fleet, since: number, holds: Holds): Entry[] {
  return ledger.content.entries.filter(({ attempts }) =>
    attempts.some(({ at, answer }) => at > since && answer !== undefined && holds(answer, at)),
  );
}

/** Resolves when each of these agents had such an answer, to what it sent since now, or to what was sent to it. */
async function untilEachHas(
  fleet: Fleet,
  agents: Agents,
  side: "from" | "to",
  { name, holds }: { readonly name: string; readonly holds: Holds },
): Promise<void> {
  const since = performance.now();
  await until(name, () => {
    const seen = new Set(answeredSince(fleet, since, holds).map((entry) => entry[side]));
    return agents.every(({ id }) => seen.has(id));
  });
}

const isUnavailable: Holds = (answer) => !answer.accepted && answer.code === "unavailable";

/** Resolves when each of these agents was refused with `unavailable`, since now. */
export async function untilRefused(fleet: Fleet, agents: Agents): Promise<void> {
  await untilEachHas(fleet, agents, "from", { name: "all are refused", holds: isUnavailable });
}

/** Resolves when envelopes to each of these agents were refused with `unavailable`, since now. */
export async function untilRefusedTo(fleet: Fleet, agents: Agents): Promise<void> {
  await untilEachHas(fleet, agents, "to", { name: "what is for them is refused", holds: isUnavailable });
}

/** Resolves when each agent had an ack that took longer than Redis takes at its best. */
export async function untilAnsweredSlowly(fleet: Fleet, atLeastMs: number): Promise<void> {
  const holds: Holds = (answer, sentAt) => answer.accepted && answer.at - sentAt >= atLeastMs;
  await untilEachHas(fleet, fleet.agents, "from", { name: "all are answered slowly", holds });
}

/** Lets a fault come, and resolves when all others were served meanwhile: only what lies in the shard may be refused. */
export async function spared(fleet: Fleet, touched: Agents, fault: () => Promise<unknown>): Promise<void> {
  const others = fleet.agents.filter((agent) => !touched.includes(agent));
  const holds: Holds = ({ accepted }) => accepted;
  await Promise.all([fault(), untilEachHas(fleet, others, "to", { name: "others are served meanwhile", holds })]);
}

/** How many envelopes that were sent since then are acknowledged as delivered to these agents in realtime. */
export function promisedTo({ ledger }: Fleet, agents: Agents, since: number): number {
  const ids = new Set(agents.map(({ id }) => id));
  return ledger.content.entries.filter(
    (entry) => entry.to !== undefined && ids.has(entry.to) && (promiseOf(entry)?.at ?? 0) > since,
  ).length;
}

/** True when an envelope to the agent, sent since then, was acknowledged as not delivered in realtime. */
export function isRefusedDelivery(fleet: Fleet, { id }: Agents[number], since: number): boolean {
  const answered = answeredSince(fleet, since, (answer) => answer.accepted && !answer.deliverable);
  return answered.some(({ to }) => to === id);
}

/** Resolves with the time at which each agent had sent and received something that was sent after `since`. */
export async function exchanging(fleet: Fleet, agents: Agents, since: number, withinMs: number): Promise<number> {
  const mark = fleet.ledger.content.entries.length;
  let times: (number | undefined)[] = [];
  await until(
    "all agents send and receive",
    () => {
      const arrived = fleet.ledger.content.entries.slice(mark).filter(hasArrived);
      times = agents.flatMap(({ id }) => [
        firstArrival(arrived.filter((entry) => entry.from === id)),
        firstArrival(arrived.filter((entry) => entry.to === id)),
      ]);
      return times.every((time) => time !== undefined);
    },
    withinMs,
  ).catch((error) => {
    const missing = times.flatMap((time, n) =>
      time === undefined ? [`${agents[n >> 1]?.id} ${n % 2 ? "receives" : "sends"}`] : [],
    );
    throw new Error(`${error.message}; missing: ${missing.join(", ")}`);
  });
  return Math.max(since, ...(times as number[]));
}

function hasArrived(entry: Entry): boolean {
  return promiseOf(entry) !== undefined && entry.deliveries.length > 0;
}

/** When the first of these had both its ack and its delivery. */
function firstArrival(entries: readonly Entry[]): number | undefined {
  const times = entries.map((entry) => Math.max(promiseOf(entry)?.answer.at ?? 0, entry.deliveries[0]?.at ?? 0));
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Of each agent that something was refused of: ms from the first `unavailable` to the next acceptance of what is for it, or its own. */
export function unavailabilities(entries: readonly Entry[], agents: Agents): number[] {
  return agents.flatMap(({ id }) => {
    const own = entries.filter(({ from, to }) => (to ?? from) === id);
    const answers = own.flatMap(({ attempts }) => attempts.flatMap(({ answer }) => answer ?? []));
    answers.sort((one, other) => one.at - other.at);
    const refused = answers.find((answer) => !answer.accepted && answer.code === "unavailable")?.at;
    if (refused === undefined) return [];
    const served = answers.find(({ accepted, at }) => accepted && at > refused)?.at;
    return served === undefined ? [] : [served - refused];
  });
}
