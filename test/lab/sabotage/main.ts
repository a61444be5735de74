import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, cp, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { JEST } from "../../../deploy/local/jest.mjs";
import { partsOf, SABOTAGES, type Sabotage } from "./sabotages.ts";

/**
 * `npm run test:sabotage`: switches off each protection in turn, in a copy of the sources, and sees that tests fail. The copy gets
 * one more line at the end of a module, so that all processes, threads and packages of a test run without the protection.
 * Ends non-zero when no test notices, or the tests say nothing.
 */

/** A test that hangs ends by its own timeout. This is for a run that never ends. */
const PATIENCE_MS = 600_000;
const SHOWN = 3;
const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));
const NOT_COPIED = new Set(["node_modules", ".git", ".local", "dist", "coverage"]);
const USAGE = `npm run test:sabotage -- [--only <words of a protection>]…

${SABOTAGES.map(({ without }) => `  ${without}`).join("\n")}
`;

const { values } = parseArgs({ options: { only: { type: "string", multiple: true }, help: { type: "boolean" } } });
const chosen = SABOTAGES.filter(({ without }) => values.only?.some((words) => without.includes(words)) ?? true);
if (values.help || chosen.length === 0) {
  process.stdout.write(USAGE);
  process.exit(values.help ? 0 : 1);
}

const tree = await mkdtemp(join(tmpdir(), "agent-relay-sabotage-"));
let missed = 0;
try {
  await copyTree(tree);
  for (const sabotage of chosen) await tryOne(sabotage);
} finally {
  await rm(tree, { recursive: true, force: true });
}
process.stdout.write(`\n${chosen.length - missed} caught, ${missed} not\n`);
process.exitCode = missed === 0 ? 0 : 1;

/**
 * Copies the sources. Packages are linked, but for the repository's own: their links are relative, and copied as they are they
 * lead to the copy, so that its tests run its code.
 */
async function copyTree(to: string): Promise<void> {
  await cp(REPOSITORY, to, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
  await mkdir(join(to, "node_modules"));
  for (const entry of await readdir(join(REPOSITORY, "node_modules"), { withFileTypes: true })) {
    const path = join(REPOSITORY, "node_modules", entry.name);
    await symlink(entry.isSymbolicLink() ? await readlink(path) : path, join(to, "node_modules", entry.name));
  }
}

async function tryOne(sabotage: Sabotage): Promise<void> {
  const module = join(tree, partsOf(sabotage)[0]);
  const source = await readFile(module);
  const startedAt = performance.now();
  await appendFile(module, lastLineOf(sabotage));
  const { isCaught, said } = verdictOf(await resultsOf(sabotage.tests));
  await writeFile(module, source);
  if (!isCaught) missed += 1;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(`${isCaught ? "caught" : "MISSED"} ${seconds.padStart(6)} s  ${sabotage.without}\n${said}\n`);
}

/** Functions and methods can be assigned to in each of these languages, by the module itself alone. */
function lastLineOf(sabotage: Sabotage): string {
  const { becomes } = sabotage;
  const [module, target] = partsOf(sabotage);
  if (target === undefined) return `\n${becomes}\n`;
  if (module.endsWith(".lua")) return `\ndo local original = ${target} ${target} = ${becomes} end\n`;
  if (module.endsWith(".py")) return `\noriginal = ${target}\n${target} = ${becomes}\n`;
  return `\n{ const original = ${target}; ${target} = ${becomes}; }\n`;
}

/** What Jest writes with `--json`, as far as it is read here. */
interface Results {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

async function resultsOf(tests: readonly string[]): Promise<Results | undefined> {
  const report = join(tree, "report.json");
  await rm(report, { force: true });
  const options = ["--runInBand", "--forceExit", "--silent", "--json", "--outputFile", report];
  const cache = ["--cacheDirectory", join(tree, ".jest")];
  const child = spawn(
    process.execPath,
    [...JEST, ...options, ...cache, "--selectProjects", "test", "ci", "--runTestsByPath", ...tests],
    // A group of its own: services that tests left running end with it.
    { cwd: tree, stdio: "ignore", detached: true },
  );
  const patience = setTimeout(() => end(child), PATIENCE_MS);
  await once(child, "exit");
  clearTimeout(patience);
  end(child);
  const text = await readFile(report, "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as Results);
}

function end({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), "SIGKILL");
  } catch {
    // The whole group has ended by itself.
  }
}

/** A file that cannot start, or of which no test passes any more, says nothing of one protection. */
function verdictOf(results: Results | undefined): { readonly isCaught: boolean; readonly said: string } {
  if (results === undefined) return { isCaught: false, said: "The run did not end." };
  const said: string[] = [];
  let isCaught = true;
  let hasPassed = false;
  for (const { name, message, assertionResults } of results.testResults) {
    const failed = assertionResults.filter(({ status }) => status === "failed");
    hasPassed ||= assertionResults.some(({ status }) => status === "passed");
    isCaught &&= failed.length > 0;
    const names = failed.slice(0, SHOWN).map(({ fullName }) => `      ${fullName}`);
    const more = failed.length > SHOWN ? [`      and ${failed.length - SHOWN} more`] : [];
    const broken = assertionResults.length === 0 ? [message] : [];
    said.push(`    ${name.slice(tree.length + 1)}: ${failed.length} fail`, ...names, ...more, ...broken);
  }
  if (!hasPassed) said.push("    No test passes.");
  return { isCaught: isCaught && hasPassed, said: said.join("\n") };
}
