import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LedgerContent, Violation } from "../../support/ledger.ts";
import { countsOf, percentile, textTable } from "../report.ts";
import type { Usage } from "./deployment.ts";
import type { Launched } from "./target.ts";

/** What a bystander asked the relay for. */
export type SampleKind = "message" | "session" | "heartbeat" | "health" | "presence" | "gateway";

/** One thing that a bystander asked for, and how it was answered. */
export interface Sample {
  readonly kind: SampleKind;
  /** When it was asked, monotonic ms. */
  readonly at: number;
  /** Ms until the answer; so far, where none has come. */
  readonly ms: number;
  /** Code, status or fault that it was refused with. */
  readonly refused?: string;
}

/** What bystanders noticed; times are ms, NaN where nothing was asked. */
interface Figures {
  /** How much was asked. */
  readonly count: number;
  /** Of messages and sessions. */
  readonly ackMedian: number;
  readonly ackP95: number;
  readonly ackMax: number;
  readonly heartbeatP95: number;
  readonly healthMax: number;
  /** How often each refusal came. */
  readonly refused: Readonly<Record<string, number>>;
}

const KINDS: Readonly<Record<string, SampleKind>> = { "message.send": "message", "agent.heartbeat": "heartbeat" };

/** What agents asked for, as the ledger has it: all else is of sessions. */
export function samplesOf({ entries }: LedgerContent): Sample[] {
  const now = performance.now();
  return entries.flatMap(({ type, to, attempts }) =>
    attempts.map(({ at, answer }): Sample => {
      const sample = { kind: KINDS[type] ?? "session", at, ms: (answer?.at ?? now) - at };
      if (answer === undefined) return { ...sample, refused: "no answer" };
      if (!answer.accepted) return { ...sample, refused: answer.code };
      return to === undefined || answer.deliverable ? sample : { ...sample, refused: "not delivered" };
    }),
  );
}

const ACKED: readonly SampleKind[] = ["message", "session"];

export function figuresOf(samples: readonly Sample[]): Figures {
  const of = (...kinds: readonly SampleKind[]) =>
    samples.filter(({ kind }) => kinds.includes(kind)).map(({ ms }) => ms);
  const refused: Record<string, number> = {};
  for (const sample of samples) {
    if (sample.refused === undefined) continue;
    const name = `${sample.kind} ${sample.refused}`;
    refused[name] = (refused[name] ?? 0) + 1;
  }
  return {
    count: samples.length,
    ackMedian: percentile(of(...ACKED), 0.5),
    ackP95: percentile(of(...ACKED), 0.95),
    ackMax: percentile(of(...ACKED), 1),
    heartbeatP95: percentile(of("heartbeat"), 0.95),
    healthMax: percentile(of("health"), 1),
    refused,
  };
}

/** What became of one attack: one line of the table. */
export interface Outcome extends Launched {
  readonly attack: string;
  /** Of the relay, before the attack, and when bystanders were measured after it. */
  readonly before: Usage;
  readonly end: Usage;
  readonly during: Figures;
  readonly after: Figures;
  /** Promises to bystanders that were broken: lost, delivered twice, out of order. */
  readonly violations: readonly Violation[];
  /** What attacker and witness saw that must not be. */
  readonly faults: readonly string[];
  readonly notes: readonly string[];
}

/** What others notice of an attack at most, ms. Source: docs/protocol.md#sharing-a-relay. */
export const BOUNDS = { ackP95: 250, heartbeatP95: PRESENCE_LIMITS.heartbeatAckMs, healthMax: 500 } as const;

const NAMES = { ackP95: "ack p95", heartbeatP95: "heartbeat p95", healthMax: "/health max" } as const;

/**
 * Every promise that an attack broke, in words.
 * @param allows refusals that bystanders may meet while the attack goes on.
 */
export function brokenBy({ during, after, violations, faults }: Outcome, allows: readonly string[] = []): string[] {
  return [...noticed(during, "during", allows), ...noticed(after, "after", []), ...faults, ...countsOf(violations)];
}

function noticed(figures: Figures, when: string, allows: readonly string[]): string[] {
  const slow = (Object.keys(BOUNDS) as (keyof typeof BOUNDS)[])
    .filter((name) => figures[name] > BOUNDS[name])
    .map((name) => `${NAMES[name]} ${figures[name].toFixed(0)} ms ${when}`);
  const refused = Object.entries(figures.refused)
    .filter(([refusal]) => !allows.includes(refusal))
    .map(([refusal, times]) => `${refusal} ${times} × ${when}`);
  return [...slow, ...refused];
}

/** What the table asks of an attack. */
interface Listed {
  readonly name: string;
  readonly allows?: readonly string[];
}

const HEAD = [
  "attack",
  "connections",
  "frames",
  "MB",
  "attacker CPU, s",
  "connectors",
  "gateway",
  "reports",
  "Redis",
  "RSS, MiB",
  "then",
  "Redis, MiB",
  "then",
  "ack p50, ms",
  "p95",
  "max",
  "after p95",
  "max",
  "heartbeat p95",
  "/health max",
  "refused",
];
const ABOUT =
  "CPU seconds of the attacker and of each service; memory of all services in RAM and of what Redis holds, before and after. Acks of messages and sessions between " +
  "bystanders, their heartbeats and /health of each service, while the attack runs; after: in the second and a half behind it.";
const MIB = 2 ** 20;

/** A line for each attack, then what was broken; an attack that has no outcome says so. */
export function tableOf(attacks: readonly Listed[], outcomes: readonly Outcome[]): string {
  const lines = attacks.map(({ name }) => lineOf(name, outcomes));
  const broken = outcomes.flatMap((outcome) => {
    const allows = attacks.find(({ name }) => name === outcome.attack)?.allows;
    return brokenBy(outcome, allows).map((what) => `${outcome.attack}: ${what}`);
  });
  const notes = outcomes.flatMap(({ attack, notes }) => notes.map((note) => `${attack}: ${note}`));
  return [textTable(HEAD, lines), "", ABOUT, "", ...notes, "", ...broken, ""].join("\n");
}

function lineOf(name: string, outcomes: readonly Outcome[]): string[] {
  const outcome = outcomes.find(({ attack }) => attack === name);
  if (outcome === undefined) return [name, "did not come through"];
  const { attacked, cpuSeconds, before, end, during, after } = outcome;
  const cpu = (...roles: string[]) =>
    roles.reduce((sum, role) => sum + (end.cpu[role] ?? 0) - (before.cpu[role] ?? 0), 0).toFixed(1);
  const resident = ({ resident }: typeof before) =>
    (Object.values(resident).reduce((sum, bytes) => sum + bytes, 0) / MIB).toFixed(0);
  return [
    name,
    ...[attacked.connections, attacked.frames].map((n) => n.toLocaleString("en")),
    (attacked.bytes / 1e6).toFixed(1),
    cpuSeconds.toFixed(1),
    ...[cpu("connector", "other connector"), cpu("gateway"), cpu("reports"), cpu("redis")],
    ...[resident(before), resident(end)],
    ...[before, end].map(({ redisBytes }) => (redisBytes / MIB).toFixed(1)),
    ...[during.ackMedian, during.ackP95, during.ackMax, after.ackP95, after.ackMax].map(ms),
    ...[during.heartbeatP95, during.healthMax].map(ms),
    String([during, after].flatMap(({ refused }) => Object.values(refused)).reduce((sum, n) => sum + n, 0)),
  ];
}

function ms(value: number): string {
  return Number.isNaN(value) ? "–" : value.toFixed(0);
}
