import type { Tally } from "../../../support/ledger.ts";
import { type Aim, type Section, shown, times } from "../../report.ts";
import { ROLLED } from "../fleet.ts";
import { RESIDENT_LEVEL } from "../verdict.ts";

/** Bytes by what takes them, just before a kill or at the end. */
export type Sample = Readonly<Record<string, number>>;

export interface Kill {
  readonly victim: Victim;
  /** Milliseconds until half of the agents, and until all, were back; infinite when somebody was not. */
  readonly median: number;
  readonly last: number;
}

export interface Outcome extends Tally {
  readonly seconds: number;
  readonly kills: readonly Kill[];
  readonly samples: readonly Sample[];
  /** Broken promises, in words. */
  readonly violations: readonly string[];
  /** Promised, and lost with an end or a bus that died. */
  readonly lostWithTheDead: number;
  /** Sent, and without an answer when the sender was killed. */
  readonly heldByTheDead: number;
  readonly unsettled: number;
  readonly repeated: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly problems: Readonly<Record<string, number>>;
  readonly failedLooks: number;
  readonly unexpectedEnds: readonly string[];
}

/** Bytes that something takes early and late in the run, without the first cycle, in which everything warms up. */
interface Course {
  readonly from: number;
  readonly to: number;
}

/** The name in samples of what dies by each kill. */
const TAKEN: Record<Victim, string> = {
  "websocket pod": ROLLED,
  Redis: "Redis, used",
  "TypeScript agents": "TypeScript agents, killed",
  "Python agents": "Python agents, killed",
};

function isKilled(what: string): boolean {
  return turnOf(what) >= 0;
}

/** Undefined when there were too few cycles to tell. */
export function courseOf(samples: readonly Sample[], what: string): Course | undefined {
  const bytes = samples.map((sample) => sample[what] ?? 0);
  if (Math.floor(bytes.length / VICTIMS.length) < LEAST_CYCLES) return undefined;
  return isKilled(what) ? leanestLives(bytes, turnOf(what)) : lineThroughCycles(bytes);
}

function turnOf(what: string): number {
  return VICTIMS.findIndex((victim) => TAKEN[victim] === what);
}

/**
 * What is killed can hold nothing of an earlier life, but may be given more by the world with each start. So its lives are compared,
 * each when it is a cycle old: the leanest of the later half to the leanest of the earlier, since a single life may by chance
 * take a sixth more from its start on. Source: docs/reliability.md#soak-of-the-connectors.
 */
function leanestLives(bytes: readonly number[], turn: number): Course {
  const lives = bytes.filter((_, n) => n >= VICTIMS.length && n % VICTIMS.length === turn);
  const half = Math.floor(lives.length / 2);
  return { from: Math.min(...lives.slice(0, half)), to: Math.min(...lives.slice(half)) };
}

/** Of the means of cycles: what is killed in a cycle is old and young in each alike. */
function lineThroughCycles(bytes: readonly number[]): Course {
  const means: number[] = [];
  for (let n = VICTIMS.length; n + VICTIMS.length <= bytes.length; n += VICTIMS.length) {
    means.push(mean(bytes.slice(n, n + VICTIMS.length)));
  }
  const middle = (means.length - 1) / 2;
  const level = mean(means);
  const slope =
    sum(means.map((value, n) => (n - middle) * (value - level))) / sum(means.map((_, n) => (n - middle) ** 2));
  return { from: level - slope * middle, to: level + slope * middle };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

const MIB = 2 ** 20;

export function sectionsOf(plan: Plan, outcome: Outcome): Section[] {
  return [messagesSection(plan, outcome), killsSection(outcome), memorySection(outcome)];
}

function messagesSection({ agents, minutes }: Plan, outcome: Outcome): Section {
  const named = (counts: Readonly<Record<string, number>>, what: string) =>
    Object.entries(counts).map(([code, n]) => [`${what}: ${code}`, n] as const);
  const counts: readonly (readonly [string, number])[] = [
    ["sent", outcome.sent],
    ["accepted", outcome.acked],
    ["of them promised in realtime", outcome.promised],
    ["delivered", outcome.delivered],
    ["promised, and lost with the end or the Redis that died", outcome.lostWithTheDead],
    ["without an answer when their sender was killed", outcome.heldByTheDead],
    ["sent again by the connector, and accepted once", outcome.repeated],
    ...named(outcome.failures, "sends that failed"),
    ...named(outcome.problems, "events of errors"),
  ];
  const due = (2 * agents * outcome.seconds * 1000) / SEND_EVERY_MS;
  return {
    title: "Messages",
    about: `${agents} agents in TypeScript and ${agents} in Python, on two pods, for ${shown(minutes)} minutes.`,
    head: ["", "times"],
    rows: counts.map(([what, n]) => [what, shown(n)]),
    aims: [
      { name: "broken promises: lost, delivered twice, out of order", value: outcome.violations.length, most: 0 },
      { name: "sends that are left hanging", value: outcome.unsettled, most: 0 },
      { name: "messages accepted to those planned", value: outcome.acked / due, least: LEAST_RATE },
      { name: "messages promised to those planned", value: outcome.promised / due, least: LEAST_PROMISED },
      { name: "processes that ended by themselves or badly", value: outcome.unexpectedEnds.length, most: 0 },
      { name: "HTTP calls answered otherwise than due", value: outcome.failedLooks, most: 0 },
    ],
    data: outcome,
  };
}

function killsSection({ kills }: Outcome): Section {
  const seconds = (ms: number) => shown(ms / 1000);
  return {
    title: "Kills",
    about: "Seconds until half of all agents, and all, had the answer to what they sent after the kill.",
    head: ["killed", "median", "last"],
    rows: kills.map(({ victim, median, last }) => [victim, seconds(median), seconds(last)]),
    aims: [
      {
        name: "seconds from a kill until everybody is back",
        value: Math.max(...kills.map(({ last }) => last)) / 1000,
        most: BACK_WITHIN_MS / 1000,
      },
    ],
    data: kills,
  };
}

function memorySection({ samples }: Outcome): Section {
  const courses = Object.keys(samples[0] ?? {}).map((what) => ({ what, course: courseOf(samples, what) }));
  const first = samples[0] ?? {};
  const last = samples.at(-1) ?? {};
  return {
    title: "Memory",
    about:
      "MiB, resident after a garbage collection, and what Redis uses: at the first kill, at the end, and what is compared: of " +
      "what lives throughout, begin and end of the line through the cycles of kills after the first; of what is killed, the " +
      "leanest of the earlier and of the later lives when they were a cycle old. A shorter run has none.",
    head: ["", "first", "end", "early", "late", ""],
    rows: courses.map(({ what, course }) => [
      what,
      ...[first[what], last[what], course?.from, course?.to].map((bytes) => shown((bytes ?? Number.NaN) / MIB)),
      times((course?.to ?? Number.NaN) / (course?.from ?? Number.NaN)),
    ]),
    aims: courses.flatMap(({ what, course }): Aim[] =>
      course === undefined
        ? []
        : [{ name: `${what}, ${comparison(what)}`, value: course.to / course.from, most: RESIDENT_LEVEL }],
    ),
    data: samples,
  };
}

function comparison(what: string): string {
  return isKilled(what) ? "leanest of the later lives to that of the earlier" : "end of the line to its begin";
}

/** What a soak of the connectors does, and what it holds them and the relay to. */

export interface Plan {
  readonly minutes: number;
  /** Of each language. */
  readonly agents: number;
}

/** Each agent, to its partners in turn. */
export const SEND_EVERY_MS = 2000;
/** Longer than any comeback: no send is to end by it. */
export const SEND_TIMEOUT_S = 30;
/** What is killed, in turn; one round of these is a cycle. */
export const VICTIMS = ["websocket pod", "Redis", "TypeScript agents", "Python agents"] as const;
export type Victim = (typeof VICTIMS)[number];

const KILL_EVERY_MS = 30_000;
/** A shorter run still has five. */
const KILLS_OF_A_SHORT_RUN = 5;

/** From the kill until every agent has had the answer to what it sent after it; a send more than the way back may take. */
const BACK_WITHIN_MS = 10_000 + SEND_EVERY_MS;
/** What is given up waiting for after a kill. */
export const GIVEN_UP_MS = 25_000;
/** Of the planned rate: what a machine must get through for the run to have meant something. */
const LEAST_RATE = 0.8;
/** Of it, what is to be promised in realtime: of the rest, nothing can be lost. */
const LEAST_PROMISED = 0.5;
/** Cycles that a line needs; the first, in which everything warms up, is none of them. */
const LEAST_CYCLES = 3;

export function killEveryMs({ minutes }: Plan): number {
  return Math.min(KILL_EVERY_MS, (minutes * 60_000) / (KILLS_OF_A_SHORT_RUN + 1));
}

/** The last span of a run has no kill at its end. */
export function killsOf(plan: Plan): number {
  return Math.round((plan.minutes * 60_000) / killEveryMs(plan)) - 1;
}

/** Calls a second of those who only look. They do so from the first to the last. */
export const LOOKS = { presenceLookUps: 4, reports: 2 } as const;
