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
  return path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find(isExecutable);
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
