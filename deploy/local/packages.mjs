import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { dropPinnedThatFails } from "./node-program.mjs";
import { runProgram } from "./run-program.mjs";

/**
 * True when npm's record of what it installed matches the lock file. npm writes the record last, so that an interrupted
 * installation never matches. Optional packages may be missing: they are for other platforms.
 *
 * @param {{ packages: Record<string, { version?: string, optional?: boolean, dev?: boolean, devOptional?: boolean }> }} lock
 *   package-lock.json
 * @param {{ packages: Record<string, { version?: string }> } | undefined} installed node_modules/.package-lock.json
 * @param {{ development: boolean }} needs whether packages that only development needs may be missing, too
 */
export function isInstalled(lock, installed, { development }) {
  if (installed === undefined) return false;
  const places = new Set([...Object.keys(lock.packages), ...Object.keys(installed.packages)]);
  return [...places]
    .filter((place) => place.includes("node_modules/"))
    .every((place) => {
      const wanted = lock.packages[place];
      const present = installed.packages[place];
      if (present === undefined) return wanted.optional === true || (!development && isForDevelopment(wanted));
      return wanted !== undefined && wanted.version === present.version;
    });
}

/** Marked by npm: what no package asks for that runs. */
const isForDevelopment = ({ dev, devOptional }) => dev === true || devOptional === true;

/**
 * True when the packages of the lock file are in `root`'s node_modules.
 *
 * @param {string} root
 * @param {{ development: boolean }} needs
 */
export function packagesReady(root, needs) {
  const lock = readJson(join(root, "package-lock.json"));
  const installed = readJson(join(root, "node_modules/.package-lock.json"));
  return isInstalled(lock, installed, needs);
}

/**
 * Installs the packages of the lock file, the pinned Node among them where npm has one. None runs a script of its own.
 *
 * @param {string} root
 * @param {{ development: boolean }} needs whether also what only development needs
 * @param {(line: string) => void} say
 * @throws {Error} when npm fails
 */
export async function installPackages(root, { development }, say) {
  const args = ["ci", "--ignore-scripts", ...(development ? [] : ["--omit=dev"])];
  say(`installing the packages of package-lock.json (npm ${args.join(" ")})`);
  await run("npm", [...args, "--loglevel=error"], root);
  dropPinnedThatFails(root);
}

/** npm removes node_modules before it installs, so no program of the run may come from there. */
function run(program, args, root) {
  const path = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => !folder.startsWith(join(root, "node_modules")));
  return runProgram(program, args, { cwd: root, env: { ...process.env, PATH: path.join(delimiter) } });
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
