import { execFile } from "node:child_process";
import { readFile, rename, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { markedUtf8, temporaryFolder, UNMARKED_UTF_16, UTF_16 } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { decodeText, FILE_TIMES, FileError, FileFollower, readRegularFile } from "../src/files.ts";

test("A text of UTF-8 has no byte order mark, whether the file has one or not", () => {
  expect(decodeText(Buffer.from("ä€😀"))).toBe("ä€😀");
  expect(decodeText(markedUtf8("ä€😀"))).toBe("ä€😀");
});

test("Of two byte order marks one is taken off, and none in the midst of a text", () => {
  expect(decodeText(markedUtf8("\ufeffa\ufeff"))).toBe("\ufeffa\ufeff");
});

test.each(["", "\ufeff", "a"])("A text as short as %j is decoded", (text) => {
  expect(decodeText(Buffer.from(text))).toBe(text.replace("\ufeff", ""));
});

test.each(UTF_16)("A file in %s is not taken for UTF-8, however short it is", (_, encoded) => {
  for (const text of ["", "{}", "ä€😀"]) expect(decodeText(encoded(text))).toBeUndefined();
});

test("A file in UTF-16 without a byte order mark is not taken for UTF-8, unlike one that holds NUL", () => {
  for (const bytes of UNMARKED_UTF_16) expect(decodeText(bytes)).toBeUndefined();
  for (const text of ["\0", "\0\0", "a\n\0"]) expect(decodeText(Buffer.from(text))).toBe(text);
});

test.each(["\xe9", '{"a":"\xff"}'])("A file in Latin-1 is not taken for UTF-8: %j", (text) => {
  expect(decodeText(Buffer.from(text, "latin1"))).toBeUndefined();
});

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

beforeEach(() => void jest.replaceProperty(FILE_TIMES, "pollMs", 2));
afterEach(() => void jest.restoreAllMocks());

test("Files count as in use again only when their new content was taken, and are read again until it is", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "file");
  await writeFile(path, "first");
  const events: string[] = [];
  const problems = ["one", "another", "another"];
  const follower = new FileFollower({
    paths: [path],
    read: async () => {},
    loaded: (_, isFirst) => {
      const problem = isFirst ? undefined : problems.shift();
      if (problem !== undefined) throw new Error(problem);
      events.push(isFirst ? "first" : "loaded");
    },
    failed: (error) => void events.push((error as Error).message),
    recovered: () => void events.push("recovered"),
  });
  await follower.start();
  await writeFile(`${path}.new`, "second");
  await rename(`${path}.new`, path);
  await until("it is in use", () => events.includes("recovered"));
  follower.stop();
  expect(events).toEqual(["first", "one", "another", "loaded", "recovered"]);
  expect(follower.isFailing).toBe(false);
});

test("Files that change while they are read are read again, and taken once", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "file");
  await writeFile(path, "old");
  const taken: string[] = [];
  const follower = new FileFollower({
    paths: [path],
    read: async () => {
      const text = await readFile(path, "utf8");
      if (text === "old") await writeFile(path, "new, and longer");
      return text;
    },
    loaded: (text) => void taken.push(text),
    failed: (error) => {
      throw error;
    },
  });
  await follower.start();
  follower.stop();
  expect(taken).toEqual(["new, and longer"]);
});
