import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export type Running = ReturnType<typeof runLines>;

/** A command of the README in a process group of its own, as a terminal runs it. */
export function run(command: string, env: Record<string, string>): Running {
  return runLines(`exec ${command}`, { ...process.env, ...env }, ROOT);
}

/** The same of several commands, one a line. */
export function runLines(lines: string, env: NodeJS.ProcessEnv, cwd: string) {
  const child = spawn("sh", ["-ec", lines], { cwd, env, detached: true });
  const streams = [child.stdout, child.stderr];
  let printed = "";
  for (const stream of streams) stream.on("data", (chunk) => (printed += String(chunk)));
  const ended = once(child, "close");
  return {
    group: child.pid as number,
    printed: () => printed,
    /** Resolves once it has printed the text so many times; rejects when it ends without. */
    says: (text: string, times = 1) =>
      new Promise<void>((resolve, reject) => {
        const look = () => {
          if (printed.split(text).length > times) resolve();
        };
        for (const stream of streams) stream.on("data", look);
        void ended.then(() => reject(new Error(`It ended without: ${text}\n${printed}`)));
        look();
      }),
    /** Ctrl-C: the terminal signals the whole group. */
    interrupt: async () => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), "SIGINT");
      return (await ended)[0] as number | null;
    },
  };
}

/** Runs a line to its end. @throws {Error} with what it printed when its exit code is not 0. */
export async function runToEnd(line: string): Promise<string> {
  return (await promisify(execFile)("sh", ["-c", line], { cwd: ROOT })).stdout;
}

/** A Redis's guardian, and the folder that ends with it. */
interface Guardian {
  readonly pid: number;
  readonly folder: string;
}

/** Those that a process of this group started. */
export async function guardiansOf(group: number): Promise<Guardian[]> {
  const { stdout } = await promisify(execFile)("ps", ["-eo", "pid=,ppid=,pgid=,args=", "-ww"]);
  const processes = stdout.split("\n").map((line) => line.trim().split(/\s+/));
  const members = new Set(processes.filter(([, , pgid]) => pgid === String(group)).map(([pid]) => pid));
  return processes
    .filter(([, parent, , ...args]) => members.has(parent) && args.includes("redis-guardian"))
    .map(([pid, ...args]) => ({ pid: Number(pid), folder: args[args.indexOf("redis-guardian") + 1] as string }));
}

export function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A line of what was printed, as it would be pasted. */
export function lineOf(printed: string, program: string): string {
  return new RegExp(`^ {2}(${program} .*)$`, "m").exec(printed)?.[1] as string;
}
