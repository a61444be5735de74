import { execFile } from "node:child_process";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { temporaryFolder, UTF_16 } from "../../../test/support/temporary-folder.ts";
import { FileError, readRegularFile } from "../src/files.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let path: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.path, "file");
});
afterEach(async () => await folder[Symbol.asyncDispose]());

test("A file is read whole, with what the system knows of it", async () => {
  await writeFile(path, "ä", { mode: 0o600 });
  const { text, stats } = await readRegularFile(path, 2);
  expect([text, stats.mode & 0o777]).toEqual(["ä", 0o600]);
});

test.each([
  ["is not there", async () => {}, "cannot be read (ENOENT)"],
  ["is a folder", () => folder.path, "is not a regular file"],
  ["is a pipe, without waiting for a writer", () => promisify(execFile)("mkfifo", [path]), "is not a regular file"],
  ["is a device", () => "/dev/null", "is not a regular file"],
  ["is larger than may be", () => tenGigabytes(), "is larger than 100 bytes"],
])("One that %s is refused", async (_, make, message) => {
  const made = await make();
  const error = await readRegularFile(typeof made === "string" ? made : path, 100).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(FileError);
  expect((error as Error).message).toBe(message);
});

test.each(UTF_16)("One in %s is refused, with how to write it", async (_, encoded) => {
  await writeFile(path, encoded("{}"));
  const message = "is not UTF-8; write it as UTF-8, in PowerShell with Set-Content -Encoding utf8";
  await expect(readRegularFile(path, 100)).rejects.toEqual(new FileError(message));
});

async function tenGigabytes(): Promise<void> {
  await writeFile(path, "");
  await truncate(path, 10_000_000_000);
}
