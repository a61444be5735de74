import { sep } from "node:path";

/** Of a package that npx fetched, as node@24 for a machine whose own Node is too old. */
const BORROWED = `${sep}_npx${sep}`;
const WITH_NODE = "npx --yes --package=node@24 -- ";
/** What runs on a Node of its own; npx of one within npx finds no packages of the project. */
const ON_NODE = /^(?:npx --no (?=relay )|(?=npm (?:test|start)\b))/;

/**
 * The lines of a project's README that its reader pastes. Whoever ran this with a Node that npx brought has none that runs them.
 * @param execPath of the Node that runs.
 */
export function pastedCommands(readme: string, execPath: string): string[] {
  const [, block = ""] = /^```sh\n([\s\S]*?)^```/m.exec(readme) ?? [];
  const lines = block.trimEnd().split("\n");
  return execPath.includes(BORROWED) ? lines.map((line) => line.replace(ON_NODE, WITH_NODE)) : lines;
}
