import { spawnSync } from "node:child_process";
import { allOnPath, onPath } from "./programs.mjs";

/** What `examples/python` and `connector-python` import, and what the tests check and build it with, as Debian packages it. */
export const PYTHON_PACKAGES = [
  "python3-websockets",
  "python3-cryptography",
  "mypy",
  "python3-build",
  "python3-setuptools",
  "python3-wheel",
];
const PROBE =
  "import sys, websockets, cryptography, mypy, build, setuptools, wheel; sys.exit(sys.version_info < (3, 11))";

/** Programs that were found, by PATH: the probe takes half a second. */
const found = new Map();

/**
 * Path of the first python3 on the PATH that can run `examples/python` and the tests of `connector-python`. There may be several, and only Debian's own finds
 * Debian's packages.
 *
 * @param {string} [path] the PATH to search
 * @returns {string}
 * @throws {Error} one line: what is missing, and what to run
 */
export function pythonProgram(path = process.env.PATH ?? "") {
  const program = found.get(path) ?? allOnPath("python3", path).find(isComplete);
  if (program !== undefined) {
    found.set(path, program);
    return program;
  }
  const howTo = onPath("apt-get", path)
    ? `Run: sudo apt-get install -y --no-install-recommends ${PYTHON_PACKAGES.join(" ")}`
    : "Run: python3 -m pip install websockets cryptography mypy build setuptools wheel";
  throw new Error(
    `There is no python3 3.11 or later with websockets, cryptography, and mypy, build, setuptools and wheel on the PATH. ${howTo}`,
  );
}

/** @param {string} program */
function isComplete(program) {
  return spawnSync(program, ["-c", PROBE]).status === 0;
}
