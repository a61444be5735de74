import { sep } from "node:path";

/** Of a Node that npm installed, by npx or in a repository, for a machine whose own is too old. */
const BORROWED = `${sep}node_modules${sep}`;
const WITH_NODE = "npx --yes --package=node@24 ";
/** Commands for whose Node npx may fetch one. Within npx, another npx finds no packages of the project. */
const RUN_BY_NODE: readonly (readonly [RegExp, with24: string])[] = [
  [/^npx --no (?=relay )/, `${WITH_NODE}-- `],
  [/^npx --yes (?=--package=)/, WITH_NODE],
  [/^(?=npm (?:install|test|start)\b)/, `${WITH_NODE}-- `],
];
/** The package for tests has a whole relay, which needs a later Node than the connector. */
const TESTS = /^npm test\b| with-relay /;
const TESTS_NEED = 24;

/**
 * The lines of a project's README that its reader pastes. If the machine's Node is too old for a line, npx fetches another.
 * @param execPath of the Node that runs. @param version of that Node.
 */
export function pastedCommands(readme: string, execPath: string, version = process.versions.node): string[] {
  const [, block = ""] = /^```sh\n([\s\S]*?)^```/m.exec(readme) ?? [];
  const isBorrowed = execPath.includes(BORROWED);
  const isOldForTests = Number.parseInt(version, 10) < TESTS_NEED;
  const lines = block.trimEnd().split("\n");
  return lines.map((line) => (isBorrowed || (isOldForTests && TESTS.test(line)) ? withNode(line) : line));
}

function withNode(line: string): string {
  const [pattern, with24] = RUN_BY_NODE.find(([command]) => command.test(line)) ?? [];
  return pattern === undefined ? line : line.replace(pattern, with24 as string);
}
