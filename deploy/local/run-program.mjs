import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Runs a program to its end; what it prints goes to stderr. Runs on Node 20, before anything is installed.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: Record<string, string | undefined> }} options
 * @throws {Error} when it cannot be run, or does not end with 0
 */
export async function runProgram(program, args, options) {
  const reason = await failureOf(spawn(program, args, { ...options, stdio: ["ignore", 2, 2] }));
  if (reason !== undefined) throw new Error(`${program} ${args.join(" ")} failed: ${reason}`);
}

/** @param {import("node:child_process").ChildProcess} child */
async function failureOf(child) {
  try {
    const [code, signal] = await once(child, "close");
    return code === 0 ? undefined : (signal ?? `exit code ${code}`);
  } catch (error) {
    return error.message;
  }
}
