import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem, type } from "node:os";
import { onPath } from "../../deploy/local/programs.mjs";
import { redisProgram } from "../../deploy/local/redis-program.mjs";
import type { Violation } from "../support/ledger.ts";

/** How programs of the lab tell what they measured: tables, aims, the machine, and the files where figures are left. */

/** One part of a report. */
export interface Section {
  readonly title: string;
  /** What the table shows, in a sentence or two. */
  readonly about: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly aims: readonly Aim[];
  /** All that was measured, for the JSON. */
  readonly data: unknown;
}

/** A figure that is not to exceed its limit, or not to fall below it. */
export interface Aim {
  readonly name: string;
  readonly value: number;
  readonly most?: number;
  readonly least?: number;
}

export function isMet({ value, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY }: Aim): boolean {
  return value <= most && value >= least;
}

/** A number as the tables show it: three digits that count, and thousands apart. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return value
    .toPrecision(3)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

/** Broken promises, counted by their kind. */
export function countsOf(violations: readonly Violation[]): string[] {
  return [...Map.groupBy(violations, ({ kind }) => kind)].map(([kind, all]) => `${all.length} × ${kind}`);
}

/** How many times another figure. */
export function times(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(2)} ×` : "–";
}

export function markdown({ title, about, head, rows }: Section): string {
  return [`### ${title}`, "", about, "", markdownTable(head, rows), ""].join("\n");
}

type Row = readonly string[];

export function markdownTable(head: Row, rows: readonly Row[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** The same for a terminal. The first column is of names, the others are of figures. */
export function textTable(head: Row, rows: readonly Row[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((cells) => cells[column]?.length ?? 0)));
  const cell = (text: string, n: number) => (n === 0 ? text.padEnd(widths[n] ?? 0) : text.padStart(widths[n] ?? 0));
  return all.map((cells) => cells.map(cell).join("  ").trimEnd()).join("\n");
}

/** Every aim of a report, in one table. */
export function aimsTable(about: string, aims: readonly Aim[]): string {
  const rows = aims.map((aim) => {
    const limit = aim.most === undefined ? `at least ${aim.least}` : `at most ${Number(aim.most.toFixed(3))}`;
    return [aim.name, limit, ofAim(aim.value), isMet(aim) ? "met" : "**not met**"];
  });
  return markdown({ title: "Aims", about, head: ["", "aim", "measured", ""], rows, aims: [], data: null });
}

/** As exact as the limits that it is compared with. */
function ofAim(value: number): string {
  return value < 1 ? String(Number(value.toFixed(3))) : value.toFixed(2);
}

/** The middle value, the mean of the two middle ones of an even number; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)] as number;
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** The value that a share `p` (0 to 1) of all does not exceed, by the nearest rank; NaN of none. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? Number.NaN;
}

/** What the figures depend on; no names of hosts. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGiB: number;
  readonly versions: Readonly<Record<string, string>>;
}

export function describeMachine(): Machine {
  const nats = natsVersion();
  const redis = spawnSync(redisProgram(), ["--version"], { encoding: "utf8" }).stdout;
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    versions: {
      [type()]: readFileSync("/proc/sys/kernel/osrelease", "utf8").trim(),
      Node: process.version,
      Redis: /v=(\S+)/.exec(redis)?.[1] ?? "unknown",
      ...(nats === undefined ? {} : { NATS: nats }),
      ...Object.fromEntries(["ws", "ioredis", "socket.io", "koa"].map((name) => [name, packageVersion(name)])),
    },
  };
}

/** What the NATS server says of itself: `nats-server: v2.9.10`. Undefined where there is none. */
function natsVersion(): string | undefined {
  const program = onPath("nats-server");
  return program && /v[\d.]+/.exec(spawnSync(program, ["--version"], { encoding: "utf8" }).stdout)?.[0];
}

export function machineText({ cores, cpu, memoryGiB, versions }: Machine): string {
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${cores} cores of ${cpu}, ${memoryGiB} GiB; ${programs.join(", ")}.`;
}

function packageVersion(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

const REPOSITORY = new URL("../../", import.meta.url);

/** Everything that was measured, as `.local/<file>`. Returns where it stands. */
export async function writeJson(file: string, measured: unknown): Promise<URL> {
  const folder = new URL(".local/", REPOSITORY);
  await mkdir(folder, { recursive: true });
  await writeFile(new URL(file, folder), `${JSON.stringify(measured, null, 1)}\n`);
  return new URL(file, folder);
}

/** Puts a text into its part of `docs/<document>`. */
export async function writeDocument(document: string, part: string, text: string): Promise<void> {
  const file = new URL(`docs/${document}`, REPOSITORY);
  await writeFile(file, insertedInto(await readFile(file, "utf8"), part, text));
}

/**
 * What stands between `<!-- part: … -->` and `<!-- /part -->` is the tool's.
 * @throws Error when the document has no place for it.
 */
function insertedInto(document: string, part: string, text: string): string {
  const place = new RegExp(`(<!-- ${part}: [^>]*-->\\n)[\\s\\S]*(<!-- /${part} -->)`);
  if (!place.test(document)) throw new Error(`The document has no place for: ${part}`);
  return document.replace(place, (_, open, close) => `${open}\n${text}\n${close}`);
}
