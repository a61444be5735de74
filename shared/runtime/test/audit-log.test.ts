import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { open as openFile, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { AuditLog, LineFile } from "../src/audit-log.ts";
import { createLogger } from "../src/logging.ts";

const REGISTERED = {
  event: "registered",
  agent: "agent://a",
  kind: "key",
  id: "key-1",
  key_id: "key-1",
  epoch: 7,
} as const;
const KEY = { kind: "key", id: "key-1" };
const logger = createLogger({ service: "test", level: "silent" });
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let file: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder.path, "audit.log");
});
afterEach(async () => {
  jest.useRealTimers();
  await folder[Symbol.asyncDispose]();
});

const lines = async () =>
  (await readFile(file, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

async function audited(write: (audit: AuditLog) => void): Promise<void> {
  const audit = new AuditLog({ file, service: "gateway", logger });
  await audit.start();
  write(audit);
  await audit.stop();
}

test("An audit log is JSON lines of time, service and event, which its owner alone reads", async () => {
  await audited((audit) => audit.write(REGISTERED));
  const [line] = await lines();
  expect(line).toEqual({ time: expect.any(String), service: "gateway", ...REGISTERED });
  expect(Date.now() - Date.parse(line.time)).toBeLessThan(60_000);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test("It goes on where it ended", async () => {
  await writeFile(file, '{"event":"earlier"}\n');
  await audited((audit) => audit.write(REGISTERED));
  expect((await lines()).map(({ event }) => event)).toEqual(["earlier", "registered"]);
});

test("Refusals of one key by one code are one line, with how many there were", async () => {
  await audited((audit) => {
    for (let n = 0; n < 1000; n += 1) audit.refused(KEY, "rate_limited");
    audit.refused({ ...KEY, kind: "issuer" }, "rate_limited");
    audit.refused(KEY, "bad_signature");
  });
  expect(await lines()).toMatchObject([
    { event: "refused", ...KEY, code: "rate_limited", times: 1000 },
    { kind: "issuer", times: 1 },
    { code: "bad_signature", times: 1 },
  ]);
});

test("Requests to the admin listener without its key are one line, with how many there were", async () => {
  await audited((audit) => {
    for (let n = 0; n < 1000; n += 1) audit.adminRefused();
  });
  const [line, ...more] = await lines();
  expect([line, more]).toEqual([
    { time: expect.any(String), service: "gateway", event: "admin_refused", times: 1000 },
    [],
  ]);
});

test("Without a file there is none", async () => {
  const audit = new AuditLog({ file: undefined, service: "gateway", logger });
  await audit.start();
  audit.write(REGISTERED);
  audit.refused(KEY, "rate_limited");
  audit.adminRefused();
  await audit.stop();
  await expect(stat(file)).rejects.toThrow("ENOENT");
});

test("A file that cannot be written stops the start, by the name of its setting", async () => {
  const audit = new AuditLog({ file: join(folder.path, "none", "audit.log"), service: "gateway", logger });
  await expect(audit.start()).rejects.toThrow("RELAY_AUDIT_FILE cannot be written (ENOENT)");
  await audit.stop();
});

test("A stop while the file is being opened leaves neither a timer nor an open file", async () => {
  jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate"] });
  const audit = new AuditLog({ file, service: "gateway", logger });
  const started = audit.start();
  await audit.stop();
  await started;
  audit.write(REGISTERED);
  await audit.stop();
  expect([jest.getTimerCount(), await readFile(file, "utf8")]).toEqual([0, ""]);
});

test("A full disk loses lines, which are counted and told, and holds up neither whoever writes nor the end", async () => {
  const told: object[] = [];
  const audit = new AuditLog({
    ...{ file: "/dev/full", service: "gateway" },
    logger: { error: (line: object) => void told.push(line) } as unknown as typeof logger,
  });
  await audit.start();
  const many = 60_000;
  for (let n = 0; n < many; n += 1) audit.write(REGISTERED);
  await audit.stop();
  expect(told).toEqual([{ err: undefined, lines_lost: 1 }]);
  expect(audit.linesLost).toBe(many);
  audit.write(REGISTERED);
});

describe("A file of lines", () => {
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
});
