import { cp, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { applied, type Mutation } from "./mutation.ts";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));
const NOT_COPIED = new Set(["node_modules", ".git", ".local", "dist", "coverage"]);

/**
 * Copies the sources into `folder`. Packages are linked, but for the repository's own: their links are relative, and
 * copied as they are they lead to the copy, so that its tests run its code.
 */
export async function copyTree(folder: string): Promise<void> {
  await cp(REPOSITORY, folder, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
  const [from, to] = [join(REPOSITORY, "node_modules"), join(folder, "node_modules")];
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const isOwn = entry.isSymbolicLink();
    await symlink(isOwn ? await readlink(join(from, entry.name)) : join(from, entry.name), join(to, entry.name));
  }
}

/** Runs `trial` in the copy with one protection switched off. @throws Error when the mutation does not apply. */
export async function mutated<T>(folder: string, mutation: Mutation, trial: () => Promise<T>): Promise<T> {
  const path = join(folder, mutation.file);
  const source = await readFile(path, "utf8");
  await writeFile(path, applied(mutation, source));
  try {
    return await trial();
  } finally {
    await writeFile(path, source);
  }
}
