import { onPath } from "./programs.mjs";

const BROWSER_PROGRAMS = ["chromium", "chromium-browser", "google-chrome"];

/**
 * Path of the first Chromium on the PATH.
 *
 * @param {string} [path] the PATH to search
 * @returns {string}
 * @throws {Error} one line: what is missing, and what to run
 */
export function browserProgram(path = process.env.PATH ?? "") {
  const found = BROWSER_PROGRAMS.map((name) => onPath(name, path)).find((program) => program !== undefined);
  if (found !== undefined) return found;
  const howTo = onPath("apt-get", path)
    ? "Run: sudo apt-get install -y --no-install-recommends chromium"
    : "Install Chromium.";
  throw new Error(`chromium is not on the PATH. ${howTo}`);
}
