import { type Aim, type Section, shown, times } from "../../report.ts";
import { RESIDENT_LEVEL } from "../plan.ts";
import { courseOf, isKilled } from "./memory.ts";
import { BACK_WITHIN_MS, LEAST_PROMISED, LEAST_RATE, type Plan, SEND_EVERY_MS } from "./plan.ts";
import type { Outcome } from "./soak.ts";

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
