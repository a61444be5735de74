import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * Path of a program on the PATH.
 *
 * @param {string} name
 * @param {string} [path]
 * @returns {string | undefined}
 */
export function onPath(name, path = process.env.PATH ?? "") {
  return allOnPath(name, path)[0];
}

/**
 * Paths of every program of this name on the PATH, in its order.
 *
 * @param {string} name
 * @param {string} path
 * @returns {string[]}
 */
export function allOnPath(name, path) {
  return path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .filter(isExecutable);
}

/** @param {string} file */
export function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
