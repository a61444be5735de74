import { onPath } from "./programs.mjs";

/**
 * Path of the kubectl on the PATH; it renders the manifests, and needs no cluster for that.
 *
 * @param {string} [path] the PATH to search
 * @returns {string}
 * @throws {Error} one line: what is missing, and what to do
 */
export function kubectlProgram(path = process.env.PATH ?? "") {
  const found = onPath("kubectl", path);
  if (found !== undefined) return found;
  throw new Error("kubectl is not on the PATH. Install a version with `kubectl kustomize`.");
}
