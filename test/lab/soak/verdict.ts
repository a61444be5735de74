import { ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import type { Tally } from "../../support/ledger.ts";
import { type Aim, median, type Section, shown, times } from "../report.ts";
import { type Family, GROWING, ROLES, type Role, type Sample } from "./fleet.ts";

/** What the run came to, beside its samples. */
export interface Outcome extends Tally {
  /** By code, those of `agent.*` included. */
  readonly refusals: Readonly<Record<string, number>>;
  /** Broken promises, in words. */
  readonly violations: readonly string[];
  readonly calls: Readonly<Record<string, number>>;
  readonly failedCalls: number;
  /** Of all calls, those answered 503. */
  readonly unavailableShare: number;
  readonly moves: number;
  readonly rolls: number;
  readonly unexpectedEnds: readonly string[];
  readonly errorLines: readonly string[];
  readonly agentsOnline: number;
  readonly seconds: number;
}

const MIB = 2 ** 20;
type Figure = (sample: Sample) => number | undefined;

/** Medians of the second and the last third of the run. */
export function thirds(samples: readonly Sample[], figure: Figure): { readonly second: number; readonly last: number } {
  const end = samples.at(-1)?.ms ?? 0;
  const within = (from: number, to: number) =>
    median(
      samples
        .filter(({ ms }) => ms > from * end && ms <= to * end)
        .map(figure)
        .filter((value) => value !== undefined),
    );
  return { second: within(1 / 3, 2 / 3), last: within(2 / 3, 1) };
}

/** Where there is nothing at all, nothing grows. */
function growth(samples: readonly Sample[], figure: Figure): number {
  const { second, last } = thirds(samples, figure);
  return last === second ? 1 : last / second;
}

export function sectionsOf({ agents }: Pick<Plan, "agents">, samples: readonly Sample[], outcome: Outcome): Section[] {
  return [processSection(samples), redisSection(samples), trafficSection(agents, outcome)];
}

function processSection(samples: readonly Sample[]): Section {
  const heap =
    (role: Role): Figure =>
    ({ processes }) =>
      processes[role]?.heap;
  const resident =
    (role: Role): Figure =>
    ({ processes }) =>
      processes[role]?.resident;
  const cells = (figure: Figure) => {
    const { second, last } = thirds(samples, figure);
    return [shown(second / MIB), shown(last / MIB), times(last / second)];
  };
  const redisResident: Figure = (sample) => sample.redisResident;
  return {
    title: "Processes",
    about:
      "MiB, after a garbage collection: median of the second third of the run, of the last third, and how many times the " +
      "one is the other. One connector lives from start to end, the other is replaced all the time. What Redis keeps for " +
      "minutes or hours, as it should, grows with it.",
    head: ["", "heap, second third", "last", "", "resident, second third", "last", ""],
    rows: [
      ...ROLES.map((role) => [role, ...cells(heap(role)), ...cells(resident(role))]),
      ["redis", "", "", "", ...cells(redisResident)],
    ],
    aims: ROLES.flatMap((role) => [
      { name: `heap of ${role}, last third to second`, value: growth(samples, heap(role)), most: LEVEL },
      { name: `resident, ${role}`, value: growth(samples, resident(role)), most: RESIDENT_LEVEL },
    ]),
    data: samples.map(({ ms, processes, redisResident }) => ({ ms, processes, redisResident })),
  };
}

function redisSection(samples: readonly Sample[]): Section {
  const families = [...new Set(samples.flatMap(({ redis }) => Object.keys(redis.families)))].sort();
  const cells = (figure: Figure) => {
    const { second, last } = thirds(samples, figure);
    return [shown(second), shown(last)];
  };
  const row = (family: string) => [
    family,
    ...cells(({ redis }) => redis.families[family]?.keys ?? 0),
    ...cells(({ redis }) => redis.families[family]?.bytes ?? 0),
  ];
  return {
    title: "Redis",
    about: "Keys by kind, and what they take, bytes: medians of the second third and of the last.",
    head: ["", "keys, second third", "last", "bytes, second third", "last"],
    rows: families.map(row),
    aims: redisAims(samples),
    data: samples.map(({ ms, redis }) => ({ ms, ...redis })),
  };
}

function redisAims(samples: readonly Sample[]): Aim[] {
  const last = samples.at(-1)?.redis;
  const each = (family: string, count: number) => (last?.families[family]?.bytes ?? 0) / Math.max(1, count);
  const grows = (family: string) => (GROWING as readonly string[]).includes(family);
  const taken = ({ keys, bytes }: Family) => bytes + EXPIRY_BYTES * keys;
  const lasting: Figure = ({ redis }) =>
    redis.used - GROWING.reduce((sum, family) => sum + taken(redis.families[family] ?? { keys: 0, bytes: 0 }), 0);
  const lastingKeys: Figure = ({ redis }) =>
    Object.entries(redis.families).reduce((sum, [family, { keys }]) => sum + (grows(family) ? 0 : keys), 0);
  return [
    {
      name: "Redis without what it keeps for minutes or hours, last third to second",
      value: growth(samples, lasting),
      most: LEVEL,
    },
    { name: "keys without those", value: growth(samples, lastingKeys), most: LEVEL },
    { name: "bytes of the guard an envelope in it", value: each("seen", last?.guarded ?? 0), most: GUARD_BYTES },
    { name: "envelopes in the guard to those accepted while it keeps them", value: guardedShare(samples), most: 1 },
    { name: "bytes of a session", value: each("session", last?.families.session?.keys ?? 0), most: SESSION_BYTES },
  ];
}

/** The worst moment: what the guard held, to what was accepted while it had to hold it. */
export function guardedShare(samples: readonly Sample[]): number {
  const shares = samples.map(({ ms, redis }) => {
    const before = samples.findLast((sample) => sample.ms < ms - GUARD_LIFE_MS)?.redis.accepted ?? 0;
    return redis.guarded / Math.max(1, redis.accepted - before);
  });
  return Math.max(0, ...shares);
}

function trafficSection(agents: number, outcome: Outcome): Section {
  const { seconds, agentsOnline } = outcome;
  const refused = Object.entries(outcome.refusals).map(([code, n]) => [`refused: ${code}`, n] as const);
  const calls = Object.entries(outcome.calls).sort(([a], [b]) => (a < b ? -1 : 1));
  const counts: readonly (readonly [string, number])[] = [
    ["envelopes sent", outcome.sent],
    ["acknowledged", outcome.acked],
    ["of them promised in realtime", outcome.promised],
    ["delivered", outcome.delivered],
    ...refused,
    ["agents that left and came back", outcome.moves],
    ["connectors replaced", outcome.rolls],
    ...calls.map(([what, n]) => [`HTTP: ${what}`, n] as const),
  ];
  return {
    title: "Traffic",
    about: `${shown(agents)} agents over two connectors, for ${shown(seconds / 60)} minutes.`,
    head: ["", "times"],
    rows: counts.map(([what, n]) => [what, shown(n)]),
    aims: [
      { name: "broken promises: lost, delivered twice, out of order", value: outcome.violations.length, most: 0 },
      { name: "processes that ended by themselves or badly", value: outcome.unexpectedEnds.length, most: 0 },
      { name: "lines of level error", value: outcome.errorLines.length, most: 0 },
      { name: "HTTP calls answered otherwise than due", value: outcome.failedCalls, most: 0 },
      { name: "share of HTTP calls answered 503", value: outcome.unavailableShare, most: UNAVAILABLE_SHARE },
      {
        name: "envelopes acknowledged a second",
        value: outcome.acked / seconds,
        least: LEAST_RATE * RATES.messages,
      },
      { name: "share of the agents that are online at the end", value: agentsOnline / agents, least: 1 },
    ],
    data: outcome,
  };
}

/** What a soak puts on the relay, and what it holds it to. */

export interface Plan {
  readonly minutes: number;
  readonly agents: number;
  /** Tells of progress. */
  readonly say: (text: string) => void;
}

/** Envelopes and requests a second, over all agents. */
export const RATES = { messages: 250, sessionRequests: 4 } as const;
/** The same over HTTP. */
export const CALLS = {
  gatewayMessages: 4,
  gatewaySessionRequests: 1,
  sessionLookUps: 2,
  presenceLookUps: 4,
  feedback: 2,
  reports: 3,
} as const;

/** How long an agent stays on one connection, on average, before it leaves of its own will. */
export const STAY_MS = 400_000;
/** How long it is away. */
export const AWAY_MS = 2000;
/** Comebacks in which the new connection takes the agent over from the old one, rather than after its close. */
export const TAKEOVER_SHARE = 0.3;

export const ROLL_EVERY_MS = 45_000;
export const SAMPLE_EVERY_MS = 10_000;

/**
 * What the last third of the run may hold in relation to the second: the median of both. A pod's own traffic comes and
 * goes by a few percent with the agents that are on it; what grows by more is kept for good.
 */
const LEVEL = 1.1;
/** Resident memory also holds what the allocator has not given back, which depends on the order of events. */
export const RESIDENT_LEVEL = 1.15;
/**
 * Bytes that docs/redis.md says a guard entry and a session take, and a tenth more: a hash table that has just doubled
 * has room for twice what is in it.
 */
const GUARD_BYTES = 88;
const SESSION_BYTES = 290;
/**
 * What a key with a time to live takes in Redis' own tables beyond what MEMORY USAGE counts: its entry among those that
 * expire, and a place in two tables that may just have doubled.
 */
const EXPIRY_BYTES = 64;
/** A bucket goes when no `ts` of its span can pass on any pod: after the skew, the tolerance between pods and the span. */
const GUARD_LIFE_MS = ENVELOPE_LIMITS.maxClockSkewMs + ENVELOPE_LIMITS.podClockToleranceMs + REDIS_LIMITS.guardBucketMs;
/** Of the planned rate: what a machine must get through for the run to have meant something. */
const LEAST_RATE = 0.8;
/** Share of calls that may be answered 503: a machine that does other things, too, may keep a process waiting now and then. */
const UNAVAILABLE_SHARE = 0.01;
