import { open, rm } from "node:fs/promises";
import { fileError } from "./file-error.ts";

/** Writes a file that only its owner may read. @throws {Error} when the file exists: a key is never overwritten. */
export async function writePrivateFile(file: string, value: object): Promise<void> {
  await using handle = await open(file, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw unwritten(file, error);
    throw new Error(`${file} exists already and is never overwritten. Choose another --out.`);
  });
  try {
    await handle.writeFile(`${JSON.stringify(value, null, 2)}\n`);
    await handle.sync();
  } catch (error) {
    // A part of it would be in the way of the next run.
    await rm(file, { force: true });
    throw unwritten(file, error as NodeJS.ErrnoException);
  }
}

function unwritten(file: string, error: NodeJS.ErrnoException): Error {
  return new Error(`${fileError(file, "written", error).message} Choose another --out.`);
}
