import { spawnSync } from "node:child_process";
import { onPath } from "./programs.mjs";

const TIMEOUT_MS = 10_000;

/**
 * Checks that a Docker engine answers.
 *
 * @param {string} [path] the PATH to search
 * @throws {Error} one line: what is missing, and what to do
 */
export function dockerEngine(path = process.env.PATH ?? "") {
  const docker = onPath("docker", path);
  if (docker === undefined) throw new Error("docker is not on the PATH. Install Docker Engine with its command line.");
  const { status, stderr } = spawnSync(docker, ["version"], { encoding: "utf8", timeout: TIMEOUT_MS });
  if (status === 0) return;
  const said = stderr.trim().split("\n").at(-1) || "no output";
  throw new Error(`The Docker engine is not reachable. Start one that this user may use. docker version: ${said}`);
}
