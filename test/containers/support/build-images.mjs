import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));

/** Jest's global setup: the images of this very tree, once a run. Layers that did not change come from the engine. */
export default async function buildImages() {
  for (const service of ["gateway", "ws-connector", "ops-reporting"]) {
    const recipe = ["-f", "deploy/docker/Dockerfile", "--build-arg", `SERVICE=${service}`];
    await promisify(execFile)("docker", ["build", ...recipe, "-t", `agent-relay-test/${service}`, "."], {
      cwd: REPOSITORY,
    });
  }
}
