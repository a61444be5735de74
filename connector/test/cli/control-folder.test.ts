import { chmod, lstat, mkdir, rmdir, symlink, writeFile } from "node:fs/promises";
import os from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { listenAt, socketPaths } from "../../src/cli/sharing/socket.ts";
import { setHome } from "./shell.ts";

describe("The folder of the control sockets", () => {
  const OF_NO_HOME = `/tmp/agent-relay-${process.getuid?.()}`;

  const warn = jest.fn<(text: string, hint: string) => void>();
  const place = { agent: "agent://alice", websocketUrl: "ws://x/ws", signal: new AbortController().signal, warn };
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
    jest.restoreAllMocks();
    setHome();
    await home[Symbol.asyncDispose]();
    // Others of this user may have a socket there.
    await rmdir(OF_NO_HOME).catch(() => {});
  });

  /** What a process gets that opens a socket, and then one that looks for it. */
  async function both(): Promise<(string | undefined)[]> {
    const socket = await listenAt(place, () => {});
    const [found] = await socketPaths(place);
    socket?.server.close();
    return [socket?.path, found].map((path) => path && dirname(path));
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
    await both();
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
