import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, readlink, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { withLock } from "../../deploy/local/lock-file.mjs";
import { runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fakeTimers } from "../support/time.ts";
import { until } from "../support/until.ts";

const SOURCE = new URL("../../deploy/local/lock-file.mjs", import.meta.url).href;
const MINUTE_S = 60;
const onLinux = process.platform === "linux" ? test : test.skip;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let lock: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  lock = join(folder.path, "lock");
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

/** Where this process is, as its own lock says behind its pid and its start. */
async function place(): Promise<string> {
  const own = await withLock(lock, 0, () => readFile(lock, "utf8"));
  return /^\d+ \d* (.+)$/.exec(own)?.[1] ?? "";
}

/** A lock that was renewed so many seconds ago. */
async function lockOf(holder: string, seconds = 0): Promise<void> {
  await writeFile(lock, holder);
  const then = Date.now() / 1000 - seconds;
  await utimes(lock, then, then);
}

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
    await lockOf(`${await pidOfTheDead()} 1 ${await place()}`);
    let inside = 0;
    const visit = async () => {
      inside += 1;
      const [holder, together] = [await readFile(lock, "utf8"), inside];
      inside -= 1;
      return [holder.split(" ")[0], together];
    };
    const visits = await Promise.all([1, 2, 3].map(() => withLock(lock, 5000, visit)));
    expect(visits).toEqual([1, 2, 3].map(() => [String(process.pid), 1]));
    expect(await readdir(folder.path)).toEqual([]);
  });

  onLinux("is taken over from a process whose pid another has by now", async () => {
    await lockOf(`${process.pid} 1 ${await place()}`);
    expect(await withLock(lock, 0, () => "in")).toBe("in");
  });

  onLinux("names the pid namespace of its holder, in which alone its pid means anything", async () => {
    expect(await place()).toContain(await readlink("/proc/self/ns/pid"));
  });

  test.each([
    ["a holder in another container or on another machine", async () => `${await pidOfTheDead()} 1 elsewhere`],
    ["a holder elsewhere with a pid that is here another's", async () => `${process.pid} 1 elsewhere`],
    ["a holder that has not written its name yet", async () => ""],
  ])("is taken over from %s only when it was not renewed for a minute", async (_, holder) => {
    await lockOf(await holder(), MINUTE_S - 5);
    await expect(withLock(lock, 0, () => "in")).rejects.toThrow(lock);
    await lockOf(await holder(), MINUTE_S + 5);
    expect(await withLock(lock, 0, () => "in")).toBe("in");
  });

  test("is renewed while its holder works", async () => {
    fakeTimers("setTimeout", "clearTimeout");
    try {
      await withLock(lock, 0, async () => {
        await utimes(lock, 1, 1);
        jest.advanceTimersByTime(10_000);
        await until("it is renewed", async () => (await stat(lock)).mtimeMs > 1000);
      });
    } finally {
      jest.useRealTimers();
    }
  });

  test("stays that of another who took it over from a holder that stood still, which is told so", async () => {
    await expect(withLock(lock, 0, () => lockOf("1 1 elsewhere"))).rejects.toThrow(/no longer holds .*another process/);
    expect(await readFile(lock, "utf8")).toBe("1 1 elsewhere");
  });

  test("is not renewed for another who took it over", async () => {
    const own = join(folder.path, "own");
    fakeTimers("setTimeout", "clearTimeout");
    try {
      const loser = withLock(lock, 0, async () => {
        await lockOf("1 1 elsewhere");
        await withLock(own, 0, async () => {
          for (const path of [lock, own]) await utimes(path, 1, 1);
          jest.advanceTimersByTime(10_000);
          await until("the other one is renewed", async () => (await stat(own)).mtimeMs > 1000);
        });
      });
      await expect(loser).rejects.toThrow("no longer holds");
    } finally {
      jest.useRealTimers();
    }
    expect((await stat(lock)).mtimeMs).toBe(1000);
  });

  test("is free again whichever call its holder died at, while it took it over from one that died before", async () => {
    const left = new Set<string>();
    const dead = `${await pidOfTheDead()} 1 ${await place()}`;
    for (let call = 1; ; call += 1) {
      await lockOf(dead);
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
