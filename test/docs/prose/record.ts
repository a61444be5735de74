import { readFileSync, writeFileSync } from "node:fs";
import { KINDS, type Kind } from "./places.ts";
import type { Sources } from "./sources.ts";

/** How many places of each kind a text has; what is absent is 0. */
export type Counts = Readonly<Record<string, Readonly<Partial<Record<Kind, number>>>>>;

export interface Change {
  readonly source: string;
  readonly kind: Kind;
  readonly recorded: number;
  readonly counted: number;
}

const FILE = new URL("recorded.json", import.meta.url);
const KIND_NAMES = Object.keys(KINDS) as Kind[];

export function recorded(): Counts {
  return JSON.parse(readFileSync(FILE, "utf8"));
}

export function record(counts: Counts): void {
  writeFileSync(FILE, textOf(counts));
}

export function countsOf(sources: Sources): Counts {
  const counted = [...sources].map(([source, places]) => {
    const numbers = KIND_NAMES.map((kind) => [kind, places.filter((place) => place.kind === kind).length] as const);
    return [source, Object.fromEntries(numbers)] as const;
  });
  return Object.fromEntries(counted);
}

export function changesOf(before: Counts, now: Counts): Change[] {
  const changes = sourcesOf(before, now).flatMap((source) =>
    KIND_NAMES.map((kind) => ({
      source,
      kind,
      recorded: before[source]?.[kind] ?? 0,
      counted: now[source]?.[kind] ?? 0,
    })),
  );
  return changes.filter(({ recorded, counted }) => recorded !== counted);
}

/** The lower of both: a record never rises. */
export function lowered(before: Counts, now: Counts): Counts {
  const lower = (source: string) =>
    KIND_NAMES.map((kind) => [kind, Math.min(before[source]?.[kind] ?? 0, now[source]?.[kind] ?? 0)] as const);
  return Object.fromEntries(sourcesOf(before, now).map((source) => [source, Object.fromEntries(lower(source))]));
}

/** One line for each text that has a count above 0. */
export function textOf(counts: Counts): string {
  const lines = sourcesOf(counts).flatMap((source) => {
    const numbers = KIND_NAMES.filter((kind) => (counts[source]?.[kind] ?? 0) > 0);
    const members = numbers.map((kind) => `"${kind}": ${counts[source]?.[kind]}`);
    return members.length === 0 ? [] : [`  ${JSON.stringify(source)}: { ${members.join(", ")} }`];
  });
  return lines.length === 0 ? "{}\n" : `{\n${lines.join(",\n")}\n}\n`;
}

function sourcesOf(...counts: Counts[]): string[] {
  return [...new Set(counts.flatMap((each) => Object.keys(each)))].sort();
}
