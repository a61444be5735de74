import { chmod, link, lstat, mkdir, readdir, rmdir, symlink, unlink, writeFile } from "node:fs/promises";
import { Server } from "node:net";
import os from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { findSocketFolder, madeSocketFolder } from "../../src/cli/control/socket-folder.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { holdIntervals } from "../times.ts";
import { asker, BOB, ControlSockets, HELLO } from "./control-kit.ts";
import { CommandLine, setHome } from "./shell.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
  sockets.clear();
});

/** More than any system gives a process. */
const NO_PROCESS = 2 ** 22;

const asAlice = () => ["--json", "--key", line.keyFile("alice")];

async function send() {
  const { code, stdout, stderr } = await line.run(["send", ...asAlice(), BOB, HELLO]);
  return { code, result: jsonLines(stdout)[0], reports: jsonLines(stderr) };
}

/** Resolves when a process has made its socket anew, for which it looks every two seconds of its clock. */
async function untilMadeAnew(path: string): Promise<void> {
  const prefix = basename(path).slice(0, -6);
  const isAnother = (name: string) => name.startsWith(prefix) && name !== basename(path);
  await until("there is another", async () => {
    jest.advanceTimersByTime(2000);
    return (await readdir(sockets.folder)).some(isAnother);
  });
}

function unshared(reports: readonly { code?: string }[]): number {
  return reports.filter(({ code }) => code === "not_shared").length;
}

const ofProcess = (pid: number) => join(sockets.folder, `${"0".repeat(24)}-${pid}-000000`);

describe("A control socket that a killed process left", () => {
  test("is removed by the next process that opens one, of whatever agent; those of processes that run are not", async () => {
    await line.listen("alice");
    const left = await sockets.leave(ofProcess(NO_PROCESS));
    // Of a process that is about to listen: it refuses connections as the other does.
    const about = await sockets.leave(ofProcess(process.ppid));
    await line.listen("bob-hmac");
    const names = await readdir(sockets.folder);
    expect(names).not.toContain(basename(left));
    expect(names).toContain(basename(about));
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("is not what somebody else put into the folder, which keeps nobody from starting", async () => {
    await line.listen("alice");
    await mkdir(join(sockets.folder, `${"a".repeat(24)}-${NO_PROCESS}-000000`));
    await line.listen("bob-hmac");
  });

  test("stays while something listens there, as a process of another namespace does", async () => {
    await line.listen("alice");
    const elsewhere = (await sockets.of()).replace(`-${process.pid}-`, `-${NO_PROCESS}-`);
    await sockets.pretend(elsewhere, (client) => client.destroy());
    await line.listen("bob-hmac");
    expect(await readdir(sockets.folder)).toContain(basename(elsewhere));
  });
});

describe("A folder that somebody fills with names of sockets", () => {
  const MANY = 1500;

  test("costs a process that starts a bounded look, and one that makes its socket anew none", async () => {
    holdIntervals();
    await line.listen("alice");
    const path = await sockets.of();
    let looks = 0;
    const other = await sockets.pretend(join(sockets.folder, "other"), (client) => {
      looks += 1;
      client.destroy();
    });
    for (let n = 0; n < MANY; n += 1)
      await link(other, join(sockets.folder, `${"0".repeat(24)}-999999999-${String(n).padStart(6, "0")}`));
    await unlink(path);
    await untilMadeAnew(path);
    expect(looks).toBe(0);
    await line.listen("bob-hmac");
    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThan(MANY / 2);
  });
});

describe("The control socket of a process", () => {
  test("has a name that nobody can take before it", async () => {
    const paths: string[] = [];
    for (const _ of [1, 2]) {
      const listener = await line.listen("alice");
      paths.push(await sockets.of());
      await listener.stop();
    }
    expect(new Set(paths).size).toBe(2);
  });

  test.each([
    ["removed", async () => {}],
    ["replaced", async (path: string) => void (await sockets.pretend(path, (client) => client.destroy()))],
  ])("is made anew when its file is %s, and nobody who has the connection through it loses it", async (_, replace) => {
    holdIntervals();
    await line.listen("alice");
    const path = await sockets.of();
    const witness = asker(await sockets.dial(path));
    await unlink(path);
    await replace(path);
    await untilMadeAnew(path);
    expect((await send()).result).toMatchObject({ via: "listener" });
    expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: 1 });
  });

  test("that cannot be had is told of once, with what helps, and the agent is online without", async () => {
    jest.spyOn(Server.prototype, "listen").mockImplementationOnce(function (this: Server) {
      process.nextTick(() => this.emit("error", Object.assign(new Error(), { code: "EPERM" })));
      return this;
    });
    const listener = await line.listen("alice");
    expect(unshared(listener.reports)).toBe(1);
    expect(listener.stderr).toContain("a file system that takes sockets");
  });
});

describe("A folder of control sockets that is not private", () => {
  test("is used by nobody: each process says so once, and how to mend it", async () => {
    await line.listen("bob-hmac");
    const { folder } = sockets;
    await chmod(folder, 0o755);
    const listener = await line.listen("alice");
    const [model, sent] = [line.begin(["mcp", ...asAlice()]), await send()];
    await model.reported("warning");
    await model.stop();
    await chmod(folder, 0o700);
    expect(sent).toMatchObject({ code: 6, reports: [{ code: "not_shared" }, { code: "superseded_elsewhere" }] });
    for (const { reports, stderr } of [listener, model]) {
      expect(unshared(reports)).toBe(1);
      expect(stderr).toContain(`chmod 700 ${folder}`);
    }
  });
});

describe("The folder of the control sockets", () => {
  const OF_NO_HOME = `/tmp/agent-relay-${process.getuid?.()}`;

  const warn = jest.fn<(text: string, hint: string) => void>();
  let home: Awaited<ReturnType<typeof temporaryFolder>>;
  /** Where the sockets are. */
  let run: string;

  beforeEach(async () => {
    warn.mockClear();
    home = await temporaryFolder();
    run = join(home.path, ".agent-relay", "run");
    setHome(home.path);
  });

  afterEach(async () => {
    setHome(line.folder);
    await home[Symbol.asyncDispose]();
    // Others of this user may have a socket there.
    await rmdir(OF_NO_HOME).catch(() => {});
  });

  /** What a process gets that opens a socket, and then one that looks for it. */
  async function both(): Promise<(string | undefined)[]> {
    return [await madeSocketFolder({ warn }), await findSocketFolder({ warn })];
  }

  test("is in the home folder that passwd has, for its owner alone, whatever the environment says", async () => {
    for (const name of ["HOME", "TMPDIR", "XDG_RUNTIME_DIR"])
      jest.replaceProperty(process, "env", { [name]: "/other" });
    expect(await both()).toEqual([run, run]);
    for (const folder of [run, join(run, "..")]) expect((await lstat(folder)).mode & 0o777).toBe(0o700);
    expect(warn).not.toHaveBeenCalled();
  });

  test.each<[which: string, home: () => string]>([
    ["with a path that is too long for a socket", () => join(home.path, "d".repeat(60))],
    ["that is missing", () => join(home.path, "missing")],
    ["where no folder can be made", () => join(home.path, "file")],
    ["that is no absolute path", () => "."],
  ])("is in /tmp for a user with a home folder %s", async (_, folder) => {
    await mkdir(join(home.path, "d".repeat(60)));
    await writeFile(join(home.path, "file"), "");
    setHome(folder());
    expect(await both()).toEqual([OF_NO_HOME, OF_NO_HOME]);
    expect((await lstat(OF_NO_HOME)).mode & 0o777).toBe(0o700);
    expect(warn).not.toHaveBeenCalled();
  });

  test("is in /tmp for a user that passwd does not have", async () => {
    Object.assign(os, {
      userInfo: () => {
        throw new Error("ENOENT");
      },
    });
    expect(await both()).toEqual([OF_NO_HOME, OF_NO_HOME]);
  });

  test.each<[what: string, make: () => Promise<unknown>]>([
    ["others can enter", async () => await chmod(run, 0o710)],
    ["is a link", async () => await symlink(home.path, run)],
    ["is a file", async () => await writeFile(run, "")],
  ])("that %s is used by nobody, who is told what helps", async (what, make) => {
    await madeSocketFolder({ warn });
    if (what !== "others can enter") await rmdir(run);
    await make();
    expect(await both()).toEqual([undefined, undefined]);
    for (const [text, hint] of warn.mock.calls)
      expect([text, hint]).toEqual([expect.stringContaining(run), expect.any(String)]);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  test("that another user has is used by nobody", async () => {
    jest.spyOn(process, "getuid").mockReturnValue(4_000_000);
    expect(await both()).toEqual([undefined, undefined]);
    expect(warn).toHaveBeenCalledTimes(2);
  });
});
