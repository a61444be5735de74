import { execFile } from "node:child_process";
import { mkdtempDisposable, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const REFERENCE = /(from |import\()"(\.\.?\/[\w/-]+)\.ts"/g;

/** The sources of a library. */
interface Library {
  /** From the repository's root on. */
  readonly folder: string;
  /** Names of its modules, without extension. */
  readonly entries: readonly string[];
  /** As in a tsconfig. */
  readonly lib: readonly string[];
}

/**
 * The declarations of a library's public types, by file name: those that its entries lead to and no others, so that
 * nothing private, and nothing of the packages bundled with it, becomes part of what users compile against.
 */
export async function declarations(library: Library): Promise<ReadonlyMap<string, string>> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "agent-relay-types-"));
  await emit(library, folder.path);
  const found = new Map<string, string>();
  const wanted = [...library.entries];
  for (const name of wanted) {
    const text = await readFile(join(folder.path, library.folder, `${name}.d.ts`), "utf8");
    found.set(`${name}.d.ts`, text.replaceAll(REFERENCE, '$1"$2.js"'));
    for (const [, , path = ""] of text.matchAll(REFERENCE)) {
      const next = posix.join(posix.dirname(name), path);
      if (!wanted.includes(next)) wanted.push(next);
    }
  }
  return found;
}

/** Declarations alone; whether the types are right is for `npm run check` to say. */
async function emit({ folder, entries, lib }: Library, outDir: string): Promise<void> {
  const config = {
    extends: join(ROOT, "tsconfig.base.json"),
    compilerOptions: {
      rootDir: ROOT,
      outDir,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      noCheck: true,
      lib,
      types: [],
    },
    files: entries.map((name) => join(ROOT, folder, `${name}.ts`)),
  };
  const path = join(outDir, "tsconfig.json");
  await writeFile(path, JSON.stringify(config));
  await promisify(execFile)(process.execPath, [TSC, "-p", path]);
}
