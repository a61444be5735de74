import { mkdir, readFile, writeFile } from "node:fs/promises";
import { describeMachine, type Machine, machineText } from "./machine.ts";
import type { Plan } from "./plan.ts";
import { aimsTable, isMet, markdown, type Section } from "./section.ts";

const REPOSITORY = new URL("../../", import.meta.url);
const DOCUMENT = new URL("docs/performance.md", REPOSITORY);
const JSON_FILE = new URL(".local/bench.json", REPOSITORY);
/** What stands between these is the tool's. */
const PART = /(<!-- benchmark: [^>]*-->\n)[\s\S]*(<!-- \/benchmark -->)/;

export interface Report {
  readonly at: string;
  readonly machine: Machine;
  readonly plan: Plan;
  readonly sections: readonly Section[];
}

export function reportOf(plan: Plan, sections: readonly Section[]): Report {
  return { at: new Date().toISOString(), machine: describeMachine(), plan, sections };
}

export function reportText({ at, machine, plan, sections }: Report): string {
  const { rounds, measureMs, warmUpMs } = plan;
  const how = `${rounds} rounds of ${measureMs / 1000} s a cell after ${warmUpMs / 1000} s of warm-up.`;
  const aims = sections.flatMap((section) => section.aims);
  const tables = sections.map(markdown);
  const verdict = aims.length === 0 ? [] : [aimsTable(aims)];
  return [`${at.slice(0, 10)}, ${machineText(machine)} ${how}`, "", ...verdict, ...tables].join("\n");
}

/** Everything that was measured. Returns where it stands. */
export async function writeJson({ at, machine, plan, sections }: Report): Promise<URL> {
  const aims = sections.flatMap((section) => section.aims.map((aim) => ({ ...aim, met: isMet(aim) })));
  const measured = Object.fromEntries(sections.map(({ title, data }) => [title, data]));
  await mkdir(new URL(".", JSON_FILE), { recursive: true });
  await writeFile(JSON_FILE, `${JSON.stringify({ at, machine, plan, aims, measured }, null, 1)}\n`);
  return JSON_FILE;
}

/** Puts the tables into docs/performance.md. */
export async function writeDocument(report: Report): Promise<void> {
  await writeFile(DOCUMENT, insertedInto(await readFile(DOCUMENT, "utf8"), reportText(report)));
}

/** @throws Error when the document has no place for it. */
export function insertedInto(document: string, text: string): string {
  if (!PART.test(document)) throw new Error("docs/performance.md has no place for the benchmark.");
  return document.replace(PART, (_, open, close) => `${open}\n${text}\n${close}`);
}
