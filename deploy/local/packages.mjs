import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isExecutable } from "./programs.mjs";

/**
 * True when npm's record of what it installed matches the lock file. npm writes the record last, so that an interrupted
 * installation never matches. Optional packages may be missing: they are for other platforms.
 *
 * @param {{ packages: Record<string, { version?: string, optional?: boolean }> }} lock package-lock.json
 * @param {{ packages: Record<string, { version?: string }> } | undefined} installed node_modules/.package-lock.json
 */
export function isInstalled(lock, installed) {
  if (installed === undefined) return false;
  const places = new Set([...Object.keys(lock.packages), ...Object.keys(installed.packages)]);
  return [...places]
    .filter((place) => place.includes("node_modules/"))
    .every((place) => {
      const wanted = lock.packages[place];
      const present = installed.packages[place];
      if (present === undefined) return wanted.optional === true;
      return wanted !== undefined && wanted.version === present.version;
    });
}

/** True when the packages of the lock file and the pinned Node are in `root`'s node_modules. */
export function packagesReady(root) {
  const lock = readJson(join(root, "package-lock.json"));
  return isInstalled(lock, readJson(join(root, "node_modules/.package-lock.json"))) && isExecutable(pinnedNode(root));
}

/**
 * Installs the packages of the lock file, the pinned Node among them.
 *
 * @param {string} root
 * @param {(line: string) => void} say
 * @throws {Error} when npm fails, or when the pinned Node does not run on this machine
 */
export function installPackages(root, say) {
  say("installing the packages of package-lock.json (npm ci)");
  run("npm", ["ci", "--loglevel=error"], root, root);

  if (!isExecutable(pinnedNode(root))) {
    say("npm skipped the install script of the pinned Node; running it");
    run("node", ["installArchSpecificPackage.js"], join(root, "node_modules/node"), root);
  }
  say("checking that the pinned Node runs here");
  run(pinnedNode(root), ["--version"], root, root);
}

/** npm removes node_modules before it installs, so no program of the run may come from there. */
function run(program, args, cwd, root) {
  const path = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => !folder.startsWith(join(root, "node_modules")));
  const { status, signal, error } = spawnSync(program, args, {
    cwd,
    env: { ...process.env, PATH: path.join(delimiter) },
    stdio: ["ignore", 2, 2],
  });
  if (status === 0) return;
  throw new Error(`${program} ${args.join(" ")} failed: ${error?.message ?? signal ?? `exit code ${status}`}`);
}

const pinnedNode = (root) => join(root, "node_modules/node/bin/node");

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
