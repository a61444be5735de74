import { expect } from "@jest/globals";
import { type Entry, forgotten, type LedgerContent, promiseOf, tally, violations } from "../../support/ledger.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import type { Fault, Injected } from "./support/fault.ts";
import type { Fleet } from "../fleet.ts";
import type { Outcome } from "./support/outcome.ts";
import { unavailabilities } from "./support/unavailability.ts";

/** The promise, where nothing else keeps the machine busy; some answers may be later even then, and none much later. */
const ANSWERED_WITHIN_MS = 1000;
const LATE_SHARE = 0.1;
const LATEST_MS = 3000;
/** Beside other tests: less than a client waits for. */
const LATEST_AT_ALL_MS = 15_000;
/** Within one heartbeat interval of 15 s, and generous for these agents, whose own is 1 s. */
const BACK_WITHIN_MS = 10_000;
/** Beside other tests, where processes that are started anew wait for their turn. */
const BACK_AT_ALL_WITHIN_MS = 30_000;

export interface Circumstances {
  times: number;
  /** Whether these tests have the machine to themselves: beside others, how soon most answers come says nothing of the relay. */
  isAlone: boolean;
}

/** Injects a fault under traffic, and fails unless every promise is kept that holds during a fault and after it. */
export async function survive<F extends Fleet>(
  fleet: F,
  fault: Fault<F>,
  { times, isAlone }: Circumstances,
): Promise<Outcome> {
  const { ledger } = fleet;
  const from = ledger.content.entries.length;
  const recoveries: number[] = [];
  const unavailable: number[] = [];
  fleet.startTraffic(fleet.stage.envelopesPerSecond);
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
  await until("what was promised is delivered", () => violations(content()).length === 0).catch(() => {});
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
  expect(fleet.pods.filter(({ isDismissed, process }) => process.hasEnded && !isDismissed)).toEqual([]);
  await fleet.stage.heal();
  const unavailable = unavailabilities(entries, injected.agents);
  if (injected.agents.length === 0 && injected.backAt === undefined) return { recoveries: [], unavailable };
  const recovery = backAt - injected.endedAt;
  if (isAlone) expect(recovery).toBeLessThanOrEqual(fault.backWithinMs ?? withinMs);
  return { recoveries: [recovery], unavailable };
}

/** Resolves with the time at which each agent had sent and received something that was sent after `since`. */
export async function exchanging(
  fleet: Fleet,
  agents: readonly ReturningAgent[],
  since: number,
  withinMs: number,
): Promise<number> {
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
