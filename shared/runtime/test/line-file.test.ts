import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { open as openFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { LineFile } from "../src/audit-log.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let path: string;
let lost: (readonly [lines: number, code: string | undefined])[];
const open = async (at = path) => {
  const file = new LineFile({
    ...{ path: at, mode: 0o600 },
    lost: (lines, error) => lost.push([lines, (error as NodeJS.ErrnoException | undefined)?.code]),
  });
  await file.open();
  return file;
};
beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.path, "lines");
  lost = [];
});
afterEach(async () => await folder[Symbol.asyncDispose]());

test("Lines are there in order once it is closed, those that come while others are written too", async () => {
  const file = await open();
  file.write("1");
  await new Promise((resolve) => setImmediate(resolve));
  for (let n = 2; n <= 1000; n += 1) file.write(String(n));
  await file.close();
  file.write("after");
  expect(await readFile(path, "utf8")).toBe(Array.from({ length: 1000 }, (_, n) => `${n + 1}\n`).join(""));
  expect(lost).toEqual([]);
});

test("What the disk has no room for is lost, and told with how many lines", async () => {
  const file = await open("/dev/full");
  for (let n = 0; n < 10; n += 1) file.write("x");
  await file.close();
  expect(lost).toEqual([[10, "ENOSPC"]]);
});

test("A pipe that nobody has open is none to write to", async () => {
  await promisify(execFile)("mkfifo", [path]);
  await expect(open()).rejects.toMatchObject({ code: "ENXIO" });
});

test("What a pipe that nobody reads does not take is lost, and holds nothing up", async () => {
  await promisify(execFile)("mkfifo", [path]);
  await using _reader = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const file = await open();
  for (let n = 0; n < 30; n += 1) file.write("x".repeat(10_000));
  await file.close();
  expect(lost.map(([, code]) => code)).toContain("EAGAIN");
});

test("No more than 4 MiB wait", async () => {
  const file = await open();
  const line = "x".repeat(1_048_575);
  for (let n = 0; n < 6; n += 1) file.write(line);
  await file.close();
  expect((await readFile(path)).length).toBe(4_194_304);
  expect(lost).toEqual([
    [1, undefined],
    [1, undefined],
  ]);
});
