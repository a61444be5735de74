import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MUTATIONS } from "./catalogue.ts";
import type { Mutation } from "./mutation.ts";
import { copyTree, mutated } from "./tree.ts";
import { tryTests } from "./trial.ts";
import type { Verdict } from "./verdict.ts";

/**
 * `npm run test:mutation`: switches off each protection in turn, in a copy of the sources, and sees that tests fail.
 * Ends non-zero when one is missed by nobody, or cannot be tried.
 */

/** Copies that work side by side. */
const LANES = 2;
const SHOWN = 3;
const USAGE = `npm run test:mutation -- [--only <protection>]…

${MUTATIONS.map(({ name }) => `  ${name}`).join("\n")}
`;

const { values } = parseArgs({ options: { only: { type: "string", multiple: true }, help: { type: "boolean" } } });
const chosen = MUTATIONS.filter(({ name }) => values.only?.includes(name) ?? true);
if (values.help || chosen.length < (values.only?.length ?? 1)) {
  process.stdout.write(USAGE);
  process.exit(values.help ? 0 : 1);
}

const folder = await mkdtemp(join(tmpdir(), "agent-relay-mutation-"));
const verdicts = new Map<Mutation, Verdict>();
try {
  const waiting = [...chosen];
  await Promise.all(Array.from({ length: LANES }, (_, lane) => work(join(folder, String(lane)), waiting)));
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.stdout.write(table());
const missed = [...verdicts.values()].filter(({ kind }) => kind !== "caught").length;
process.stdout.write(`\n${verdicts.size - missed} caught, ${missed} not\n`);
process.exitCode = missed === 0 ? 0 : 1;

async function work(tree: string, waiting: Mutation[]): Promise<void> {
  await copyTree(tree);
  for (let mutation = waiting.shift(); mutation !== undefined; mutation = waiting.shift()) {
    const startedAt = performance.now();
    const verdict = await judge(tree, mutation);
    verdicts.set(mutation, verdict);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    process.stdout.write(`${verdict.kind.padEnd(8)} ${seconds.padStart(5)} s  ${mutation.name}\n`);
  }
}

async function judge(tree: string, mutation: Mutation): Promise<Verdict> {
  try {
    return await mutated(tree, mutation, () => tryTests(tree, mutation.tests));
  } catch (error) {
    return { kind: "unfit", why: (error as Error).message };
  }
}

function table(): string {
  const rows = chosen.map((mutation) => `| ${mutation.name} | ${noticed(verdicts.get(mutation) as Verdict)} |`);
  return ["", "| without | fails |", "|---|---|", ...rows, ""].join("\n");
}

function noticed(verdict: Verdict): string {
  if (verdict.kind === "unfit") return `**not tried**: ${verdict.why}`;
  if (verdict.kind === "survived") return `**nothing** in ${verdict.unnoticedBy.join(", ")}`;
  const more = verdict.by.length - SHOWN;
  return verdict.by.slice(0, SHOWN).join("; ") + (more > 0 ? `; and ${more} more` : "");
}
