import { constants, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { decodeText, NOT_UTF_8 } from "./file-text.ts";

/** A file cannot be read. The message goes on a sentence that begins with its name, and holds nothing of its text. */
export class FileError extends Error {}

export interface RegularFile {
  readonly text: string;
  readonly stats: Stats;
}

/**
 * Reads a file that the operator names, at start or while a service runs. A pipe would be waited for, by a thread that no stop ends; a
 * file far larger than any that is meant would take memory and event loop.
 * @throws {FileError} when it cannot be read, is no regular file, or is larger than `mostBytes`, or is no UTF-8.
 */
export async function readRegularFile(path: string, mostBytes: number): Promise<RegularFile> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(unreadable);
  const stats = await file.stat().catch(unreadable);
  if (!stats.isFile()) throw new FileError("is not a regular file");
  if (stats.size > mostBytes) throw new FileError(`is larger than ${mostBytes} bytes`);
  const text = decodeText(await file.readFile().catch(unreadable));
  if (text === undefined) throw new FileError(NOT_UTF_8);
  return { text, stats };
}

function unreadable({ code }: NodeJS.ErrnoException): never {
  throw new FileError(`cannot be read (${code})`);
}
