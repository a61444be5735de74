import type { Attack } from "./attack.ts";
import type { Outcome } from "./outcome.ts";
import { brokenBy } from "./promises.ts";

/** What the table asks of an attack. */
type Listed = Pick<Attack, "name" | "allows">;

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
  const all = [HEAD, ...attacks.map(({ name }) => lineOf(name, outcomes))];
  const widths = HEAD.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0)));
  const text = all.map((line) =>
    line
      .map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
  const broken = outcomes.flatMap((outcome) => {
    const allows = attacks.find(({ name }) => name === outcome.attack)?.allows;
    return brokenBy(outcome, allows).map((what) => `${outcome.attack}: ${what}`);
  });
  const notes = outcomes.flatMap(({ attack, notes }) => notes.map((note) => `${attack}: ${note}`));
  return [...text, "", ABOUT, "", ...notes, "", ...broken, ""].join("\n");
}

/** Attacks without an outcome: the table is not complete. */
export function missingIn(attacks: readonly Listed[], outcomes: readonly Outcome[]): string[] {
  const names = attacks.map(({ name }) => name);
  return names.filter((name) => !outcomes.some(({ attack }) => attack === name));
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
