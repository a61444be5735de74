import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { PackedText } from "./tarball.ts";

/** Paths of the files in a folder, however deep, in an order of their own; what Python compiles beside its modules is none. */
export async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.split(sep).includes("__pycache__"))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** The text of a source file. Lines end with LF in packages, whatever git made of them on this machine. */
export async function textOf(file: string): Promise<string> {
  return (await readFile(file, "utf8")).replaceAll("\r\n", "\n");
}

/** The files in a folder as a package has them, by their paths from `base` on. Programs lie in `bin/`. */
export async function packedFrom(folder: string, base = folder): Promise<PackedText[]> {
  const files = (await filesIn(folder)).map(async (file) => {
    const path = relative(base, file);
    return { path, text: await textOf(file), isProgram: path.startsWith("bin/") };
  });
  return await Promise.all(files);
}
