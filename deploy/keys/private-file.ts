import { open } from "node:fs/promises";

/** Writes a file that only its owner may read. @throws {Error} when the file exists: a key is never overwritten. */
export async function writePrivateFile(file: string, value: object): Promise<void> {
  await using handle = await open(file, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    const problem =
      error.code === "EEXIST" ? "exists already and is never overwritten" : `cannot be written (${error.code})`;
    throw new Error(`${file} ${problem}. Choose another --out.`);
  });
  await handle.writeFile(`${JSON.stringify(value, null, 2)}\n`);
  await handle.sync();
}
