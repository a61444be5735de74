import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readlink, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { withLock } from "../../deploy/local/lock-file.mjs";
import { runProgram } from "../support/run-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SOURCE = new URL("../../deploy/local/lock-file.mjs", import.meta.url).href;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let lock: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  lock = join(folder.path, "lock");
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

describe("The lock file", () => {
  test("lets one in at a time, and is gone afterwards", async () => {
    const events: string[] = [];
    const visit = (name: string) =>
      withLock(lock, 5000, async () => {
        events.push(`${name} in`);
        await new Promise(setImmediate);
        events.push(`${name} out`);
      });
    await Promise.all([visit("a"), visit("b")]);
    expect(events).toEqual(["a in", "a out", "b in", "b out"]);
    expect(await readdir(folder.path)).toEqual([]);
  });

  test("is let go when the work fails", async () => {
    await expect(withLock(lock, 0, () => Promise.reject(new Error("no luck")))).rejects.toThrow("no luck");
    expect(await readdir(folder.path)).toEqual([]);
  });

  test("is taken over from a process that died, by one after the other", async () => {
    await symlink(`${await pidOfTheDead()} `, lock);
    let inside = 0;
    const visit = async () => {
      inside += 1;
      const [holder, together] = [await readlink(lock), inside];
      inside -= 1;
      return [holder.split(" ")[0], together];
    };
    const visits = await Promise.all([1, 2, 3].map(() => withLock(lock, 5000, visit)));
    expect(visits).toEqual([1, 2, 3].map(() => [String(process.pid), 1]));
    expect(await readdir(folder.path)).toEqual([]);
  });

  const whereStartsAreTold = process.platform === "linux" ? test : test.skip;
  whereStartsAreTold("is taken over from a process whose pid another has by now", async () => {
    await symlink(`${process.pid} 1`, lock);
    expect(await withLock(lock, 0, () => "in")).toBe("in");
  });

  test("is free again whichever call its holder died at, while it took it over from one that died before", async () => {
    const left = new Set<string>();
    for (let call = 1; ; call += 1) {
      await symlink(`${await pidOfTheDead()} `, lock);
      const { code } = await runProgram(process.execPath, ["--input-type=module", "--eval", killedAt(call)]);
      left.add((await readdir(folder.path)).join(" "));
      expect(await withLock(lock, 0, () => "in")).toBe("in");
      if (code === 0) break;
      expect(code).toBe("SIGKILL");
    }
    expect(left).toContain("lock lock.break");
  });

  test("gives up with the lock's name when a living process keeps it", async () => {
    await withLock(lock, 0, async () => {
      await expect(withLock(lock, 0, () => "in")).rejects.toThrow(lock);
      expect(await readdir(folder.path)).toEqual(["lock"]);
    });
  });
});

/** A program that takes the lock, and is killed before its nth call that is about it. */
function killedAt(call: number): string {
  return `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    let calls = 0;
    for (const name of Object.keys(fs).filter((name) => name.endsWith("Sync"))) {
      const original = fs[name];
      fs[name] = (...args) => {
        if (args.some((arg) => String(arg).startsWith(${JSON.stringify(lock)})) && ++calls === ${call}) process.kill(process.pid, "SIGKILL");
        return original(...args);
      };
    }
    syncBuiltinESMExports();
    const { withLock } = await import(${JSON.stringify(SOURCE)});
    await withLock(${JSON.stringify(lock)}, 0, () => {});`;
}

async function pidOfTheDead(): Promise<number | undefined> {
  const child = spawn("true");
  await once(child, "exit");
  return child.pid;
}
