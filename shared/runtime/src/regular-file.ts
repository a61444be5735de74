import { constants, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/** A file cannot be read. The message goes on a sentence that begins with its name, and holds nothing of its text. */
export class FileError extends Error {}

export interface RegularFile {
  readonly text: string;
  readonly stats: Stats;
}

/**
 * Reads a file that the operator names, at start or while a service runs. A pipe would be waited for, by a thread that no stop ends; a
 * file far larger than any that is meant would take memory and event loop.
 * @throws {FileError} when it cannot be read, is no regular file, or is larger than `mostBytes`.
 */
export async function readRegularFile(
  path: string,
  mostBytes: number,
  encoding: "utf8" | "latin1" = "utf8",
): Promise<RegularFile> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(unreadable);
  const stats = await file.stat().catch(unreadable);
  if (!stats.isFile()) throw new FileError("is not a regular file");
  if (stats.size > mostBytes) throw new FileError(`is larger than ${mostBytes} bytes`);
  return { text: await file.readFile(encoding).catch(unreadable), stats };
}

function unreadable({ code }: NodeJS.ErrnoException): never {
  throw new FileError(`cannot be read (${code})`);
}
