import { expect } from "@jest/globals";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import {
  type Entry,
  forgotten,
  type LedgerContent,
  type Tally,
  tally,
  type Violation,
  violations,
} from "../../support/ledger.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import type { Fleet } from "../fleet.ts";
import { exchanging, unavailabilities } from "./looks.ts";

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
