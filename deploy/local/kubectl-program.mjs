import { onPath } from "./programs.mjs";

/**
 * Path of the kubectl on the PATH; it renders the manifests, and needs no cluster for that.
 *
 * @param {string} [path] the PATH to search
 * @returns {string}
 * @throws {Error} one line that says what is wrong and what to do
 */
export function kubectlProgram(path = process.env.PATH ?? "") {
  const found = onPath("kubectl", path);
  if (found !== undefined) return found;
  throw new Error("No kubectl on the PATH. Install it; its version must have `kubectl kustomize`.");
}
