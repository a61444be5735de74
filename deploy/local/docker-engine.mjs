import { spawnSync } from "node:child_process";
import { onPath } from "./programs.mjs";

const ANSWER_WITHIN_MS = 10_000;

/**
 * Makes sure that a Docker engine answers.
 *
 * @param {string} [path] the PATH to search
 * @throws {Error} one line that says what is wrong and what to do
 */
export function dockerEngine(path = process.env.PATH ?? "") {
  const docker = onPath("docker", path);
  if (docker === undefined) throw new Error("No docker on the PATH. Install Docker Engine and its command line.");
  const { status, stderr } = spawnSync(docker, ["version"], { encoding: "utf8", timeout: ANSWER_WITHIN_MS });
  if (status === 0) return;
  const said = stderr.trim().split("\n").at(-1) || "nothing";
  throw new Error(`No Docker engine answers. Start one that this user may use. Docker said: ${said}`);
}
