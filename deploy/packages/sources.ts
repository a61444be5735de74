import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { filesIn, textOf } from "./files.ts";

/**
 * Digest of text files and folders, names and contents, in an order of their own.
 * @param paths from `root` on.
 */
export async function digestOf(root: string, paths: readonly string[]): Promise<string> {
  const files = (await Promise.all(paths.map((path) => filesAt(join(root, path))))).flat().sort();
  const contents = await Promise.all(files.map(textOf));
  const hash = createHash("sha256");
  for (const [index, file] of files.entries()) {
    const content = contents[index] as string;
    hash.update(`${relative(root, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

async function filesAt(path: string): Promise<string[]> {
  return (await stat(path)).isFile() ? [path] : await filesIn(path);
}
