import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));

/** Jest's global setup: the images of this very tree, once a run. Layers that did not change come from the engine. */
export default async function buildImages() {
  for (const stage of ["all", "setup"]) await build(stage, "--target", stage);
  for (const service of ["gateway", "ws-connector", "ops-reporting"]) {
    await build(service, "--build-arg", `SERVICE=${service}`);
  }
}

async function build(image, ...options) {
  const command = ["build", "-f", "deploy/docker/Dockerfile", ...options, "-t", `agent-relay-test/${image}`, "."];
  await promisify(execFile)("docker", command, { cwd: REPOSITORY, maxBuffer: 64 * 1024 * 1024 });
}
