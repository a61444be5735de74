import { isAbsolute, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { COMMON } from "./arguments.ts";
import { packageFolder } from "./files.ts";
import type { Command, CommandEntry, Options } from "./io.ts";

/** The help pages. Each has at most 25 lines of 80 columns; CLI.md has the details. */

const COLUMNS = 80;

/** What `relay --help` prints. */
export function overview(commands: readonly CommandEntry[]): string {
  const rows = commands.map(({ name, summary }) => [name, summary] as const);
  return `Usage: relay <command> [options]. relay <command> --help explains a command.

${table(rows)}

  relay keygen --agent agent://alice > record.json
  relay send --key alice.json agent://bob '{"message":"Hello, Bob."}'
${reference("")}`;
}

/** What `relay <command> --help` prints. */
export function pageOf({ name, summary }: CommandEntry, { usage, options, examples }: Command): string {
  const all: Options = { ...options, ...COMMON };
  const rows = Object.entries(all).map(([option, { value, help }]) => {
    return [`--${option}${value === undefined ? "" : ` ${value}`}`, help] as const;
  });
  return `Usage: relay ${name} ${usage}

${summary}

Options:
${table(rows)}

Examples:
${examples.map((example) => `  ${example}`).join("\n")}

${reference(`#${name}`)}`;
}

/** Terms with what they mean, which goes on in the next line where it is long. */
function table(rows: readonly (readonly [term: string, text: string])[]): string {
  const width = Math.max(...rows.map(([term]) => term.length)) + 4;
  const lines = rows.flatMap(([term, text]) =>
    wrapped(text, COLUMNS - width).map((line, index) => (index === 0 ? `  ${term}` : "").padEnd(width) + line),
  );
  return lines.join("\n");
}

function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** The file of this package, wherever npm or npx has put it. */
function reference(section: string): string {
  const file = join(fileURLToPath(packageFolder()), "CLI.md");
  const fromHere = relative(process.cwd(), file);
  const isBelow = !isAbsolute(fromHere) && !fromHere.startsWith(`..${sep}`);
  return `Reference: ${isBelow ? fromHere : file}${section}\n`;
}
