import { lstat, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { writePrivateFile } from "../private-file.ts";

/** @throws {Failure} that names the files of the folder that are there already, of those that are to be written. */
export async function refuseToOverwrite(folder: string, names: readonly string[]): Promise<void> {
  const found = await Promise.all(names.map((name) => lstat(join(folder, name)).catch(() => undefined)));
  const inTheWay = names.filter((_, index) => found[index] !== undefined);
  if (inTheWay.length === 0) return;
  throw new Failure(
    "failed",
    `In the way, in ${folder}: ${inTheWay.join(", ")}. Nothing was written.`,
    "Name an empty or a new folder: relay init <folder>. No file is overwritten.",
  );
}

/**
 * @param files by name, with the .gitignore that covers the keys: it is there before they are.
 * @param keys contents of key files, by name. @throws {Failure}
 */
export async function writeProject(
  folder: string,
  files: ReadonlyMap<string, string>,
  keys: ReadonlyMap<string, object>,
): Promise<void> {
  const failed = ({ code }: NodeJS.ErrnoException) => {
    throw new Failure("failed", `${folder} cannot be written (${code}).`, "Choose another folder.");
  };
  await mkdir(folder, { recursive: true }).catch(failed);
  for (const [name, text] of files) await writeFile(join(folder, name), text, { flag: "wx" }).catch(failed);
  for (const [name, content] of keys) await writePrivateFile(join(folder, name), content);
}
