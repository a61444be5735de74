import { execFile } from "node:child_process";
import { chmod, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { temporaryFolder } from "../../../../test/support/temporary-folder.ts";
import { until } from "../../../../test/support/until.ts";
import { AdminKey } from "../../src/admin/admin-key.ts";
import { FILE_TIMES, FileFollower } from "../../src/files.ts";

const KEY = "a-key.of:32~visible!ASCII_letters";
const OTHER = KEY.toUpperCase();

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let path: string;
let errors: object[];
let infos: string[];
let key: AdminKey;

beforeEach(async () => {
  jest.replaceProperty(FILE_TIMES, "pollMs", 2);
  folder = await temporaryFolder();
  path = join(folder.path, "admin.key");
  errors = [];
  infos = [];
  key = keyAt(path);
});
afterEach(async () => {
  key.stop();
  jest.restoreAllMocks();
  await folder[Symbol.asyncDispose]();
});

function keyAt(file: string): AdminKey {
  const logger = { info: (text: string) => void infos.push(text), error: (line: object) => void errors.push(line) };
  return new AdminKey({ path: file, logger });
}

const pipe = () => promisify(execFile)("mkfifo", ["-m", "600", path]);
const write = async (text: string, mode = 0o600) => {
  await writeFile(path, text);
  await chmod(path, mode);
};

test.each([KEY, `${KEY}\n`, `${KEY}\r\n`, `\ufeff${KEY}\r\n`])(
  "An admin key is the one line of its file: %j",
  async (text) => {
    await write(text);
    expect(key.isIn(`Bearer ${KEY}`)).toBe(false);
    await key.start();
    for (const field of [`Bearer ${KEY}`, `bearer  ${KEY}`]) expect(key.isIn(field)).toBe(true);
  },
);

test.each([
  "",
  "Bearer",
  `Bearer ${KEY.slice(0, -1)}`,
  `Bearer ${KEY}x`,
  `Bearer ${KEY} x`,
  `Bearer ${OTHER}`,
  `Basic ${KEY}`,
  KEY,
])("No other field has it: %j", async (field) => {
  await write(KEY);
  await key.start();
  expect(key.isIn(field)).toBe(false);
});

test.each([
  ["no file", async () => {}, "cannot be read (ENOENT)"],
  ["a short key", () => write("short".repeat(6)), "must hold one line of at least 32 visible ASCII characters"],
  ["two lines", () => write(`${KEY}\n${KEY}\n`), "must hold one line"],
  ["a pipe, without waiting for a writer", () => pipe(), "is not a regular file"],
  ["spaces", () => write(`${KEY} ${KEY}`), "must hold one line"],
  ["letters that are not ASCII", () => write(`${KEY}é`), "must hold one line"],
  [
    "a file that others may read",
    () => write(KEY, 0o604),
    "must be readable by its owner alone (chmod 600), or be of root and readable by its group (0440)",
  ],
  [
    "a file that its group may write",
    () => write(KEY, 0o620),
    "must be readable by its owner alone (chmod 600), or be of root and readable by its group (0440)",
  ],
])("A start is refused for %s, and nothing of the file is told", async (_what, make, rule) => {
  await make();
  const error = await key.start().catch((thrown: Error) => thrown);
  const { name, message } = error as Error;
  expect([name, message]).toEqual(["SettingsError", expect.stringContaining(`RELAY_ADMIN_KEY_FILE ${rule}`)]);
  expect(message).not.toMatch(/a-key|short/);
});

test("The group of its file may read it where root owns it, as Kubernetes has it, and nowhere else", async () => {
  await write(KEY, 0o640);
  const isOfRoot = process.getuid?.() === 0;
  const outcome = await key.start().then(
    () => "read",
    ({ name }: Error) => name,
  );
  expect(outcome).toBe(isOfRoot ? "read" : "SettingsError");
});

test("It is read again when it changes; what cannot be used keeps the one before, and is logged once", async () => {
  await write(KEY);
  await key.start();
  await write("short");
  await until("it is logged", () => errors.length > 0);
  expect(key.isIn(`Bearer ${KEY}`)).toBe(true);
  expect(JSON.stringify(errors)).not.toContain("short");
  await write(OTHER);
  await until("the other one holds", () => key.isIn(`Bearer ${OTHER}`));
  expect([key.isIn(`Bearer ${KEY}`), errors.length]).toEqual([false, 1]);
});

test("A change of the key is told once, and a file that was written again as it was is none", async () => {
  await write(KEY);
  await key.start();
  let looks = 0;
  const loaded = () => {
    looks += 1;
  };
  const witness = new FileFollower({ paths: [path], read: async () => {}, loaded, failed: () => {} });
  await witness.start();
  // By the time at which it has seen the second change the key, which looks as often, has seen the first.
  for (const at of [1, 2]) {
    await utimes(path, at, at);
    await until("the change was seen", () => looks > at);
  }
  witness.stop();
  await write(OTHER);
  await until("the key has changed", () => key.isIn(`Bearer ${OTHER}`));
  expect(infos).toEqual(["admin key changed"]);
});
