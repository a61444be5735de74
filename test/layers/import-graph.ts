import { readdir } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseFile } from "@swc/core";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

/** Folder of each package's sources, by the name that imports give it. */
const SOURCES: Readonly<Record<string, string>> = {
  "relay-protocol": "shared/protocol/src",
  "relay-runtime": "shared/runtime/src",
  "relay-window": "shared/window/src",
  gateway: "services/gateway/src",
  "ws-connector": "services/ws-connector/src",
  "ops-reporting": "services/ops-reporting/src",
  "agent-relay-connector": "connector/src",
};
export const PACKAGES = Object.keys(SOURCES);

/** From a source file of one package to a file of any, or to a package of others. Paths are from the repository on. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

/** Every import of the sources of all packages, types included. */
export async function readImports(): Promise<Import[]> {
  const files = (await Promise.all(Object.values(SOURCES).map(sourceFiles))).flat();
  const imports = files.map(async (from) => {
    const specifiers = new Set(specifiersIn(await parseFile(join(REPOSITORY, from), { syntax: "typescript" })));
    return [...specifiers].map((specifier) => ({ from, to: targetOf(from, specifier) }));
  });
  return (await Promise.all(imports)).flat();
}

/** Which of our packages a source file or package.json belongs to; undefined for what is not ours. */
export function packageOf(file: string): string | undefined {
  const owns = ([, folder]: [string, string]) =>
    file.startsWith(`${folder}/`) || file === `${dirname(folder)}/package.json`;
  return Object.entries(SOURCES).find(owns)?.[0];
}

/** Sets of files that import each other, directly or through others of the set; sorted. */
export function circlesIn(imports: readonly Import[]): string[][] {
  const targets = new Map(
    [...Map.groupBy(imports, ({ from }) => from)].map(([from, all]) => [from, all.map(({ to }) => to)]),
  );
  const reaches = (from: string): ReadonlySet<string> => {
    const reached = new Set<string>();
    const open = [...(targets.get(from) ?? [])];
    for (let file = open.pop(); file !== undefined; file = open.pop()) {
      if (reached.has(file)) continue;
      reached.add(file);
      open.push(...(targets.get(file) ?? []));
    }
    return reached;
  };
  const reached = new Map([...targets.keys()].map((file) => [file, reaches(file)]));
  const inCircle = [...targets.keys()].filter((file) => reached.get(file)?.has(file)).sort();
  const circleOf = (file: string) =>
    inCircle.filter((other) => reached.get(file)?.has(other) && reached.get(other)?.has(file));
  return [...Map.groupBy(inCircle, (file) => circleOf(file).join(" ")).values()];
}

async function sourceFiles(folder: string): Promise<string[]> {
  const names = await readdir(join(REPOSITORY, folder), { recursive: true });
  return names.filter((name) => name.endsWith(".ts")).map((name) => `${folder}/${name}`);
}

/** Walks a syntax tree: static and dynamic imports, re-exports, and the types of `import("…")`. */
function* specifiersIn(node: unknown): Generator<string> {
  if (typeof node !== "object" || node === null) return;
  const { type, source, callee, argument, arguments: values } = node as SyntaxNode;
  if (type?.endsWith("Declaration") && source?.value !== undefined) yield source.value;
  if (type === "TsImportType" && argument?.value !== undefined) yield argument.value;
  if (type === "CallExpression" && callee?.type === "Import") {
    const value = values?.[0]?.expression?.value;
    if (value !== undefined) yield value;
  }
  for (const child of Object.values(node)) yield* specifiersIn(child);
}

interface SyntaxNode {
  readonly type?: string;
  readonly source?: { readonly value: string } | null;
  readonly argument?: { readonly value?: string } | null;
  readonly callee?: { readonly type?: string };
  readonly arguments?: readonly { readonly expression?: { readonly value?: string } }[];
}

function targetOf(from: string, specifier: string): string {
  if (specifier.startsWith(".")) return normalize(join(dirname(from), specifier));
  const [name = "", ...path] = specifier.split("/");
  return SOURCES[name] === undefined ? specifier : join(SOURCES[name], ...path);
}
