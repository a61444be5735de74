import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { isExecutable } from "./programs.mjs";

/** The sources run on this Node and later ones: `mkdtempDisposable` came with it. */
const [MIN_MAJOR, MIN_MINOR] = [24, 4];

/**
 * The Node that the commands run on: the machine's own if it is new enough, else the pinned one.
 *
 * @param {{ platform: string, version: string, program: string, pinned: string | undefined }} machine
 *   `program`: path of the machine's Node, which has `version`. `pinned`: path of the Node that npm brought, if it did.
 * @returns {string} path of a Node
 * @throws {Error} one line: what is missing, and what to run
 */
export function chooseNode({ platform, version, program, pinned }) {
  const [major, minor] = version.replace(/^v/, "").split(".").map(Number);
  if (major > MIN_MAJOR || (major === MIN_MAJOR && minor >= MIN_MINOR)) return program;
  if (pinned !== undefined) return pinned;
  throw new Error(
    `This is Node ${version}, and npm brought no newer one for ${platform}. Install Node ${MIN_MAJOR}.${MIN_MINOR} or later; nvm install reads .nvmrc.`,
  );
}

/** @param {string} root @returns what `chooseNode` chooses of this machine. */
export function nodeProgram(root) {
  const { platform, arch, version, execPath } = process;
  const pinned = pinnedNode(root);
  return chooseNode({
    platform: `${platform} on ${arch}`,
    version,
    program: execPath,
    pinned: isExecutable(pinned) ? pinned : undefined,
  });
}

/**
 * Removes a pinned Node that does not run here, such as one for glibc on Alpine. Scripts of npm would find it before the machine's.
 *
 * @param {string} root
 */
export function dropPinnedThatFails(root) {
  const pinned = pinnedNode(root);
  if (spawnSync(pinned, ["--version"]).status !== 0) rmSync(pinned, { force: true });
}

/** npm links the package for this platform here, whose content the lock file pins. It has none for other platforms. */
const pinnedNode = (root) => join(root, "node_modules/.bin/node");
