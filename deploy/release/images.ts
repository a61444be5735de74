import { join } from "node:path";
import type { Pinned } from "./base-images.ts";
import { isThere, run } from "./command.ts";
import type { ReleaseId } from "./version.ts";

/** The images that are the relay's own, each with what tells it from the others in the Dockerfile. */
const IMAGES = {
  gateway: ["--build-arg", "SERVICE=gateway"],
  "ws-connector": ["--build-arg", "SERVICE=ws-connector"],
  "ops-reporting": ["--build-arg", "SERVICE=ops-reporting"],
  setup: ["--target", "setup"],
  all: ["--target", "all"],
} as const;
const PLATFORMS = "linux/amd64,linux/arm64";

export interface BuiltImage {
  /** With its tag. */
  readonly name: string;
  /** In the folder of the release: an OCI layout from buildx, else what `docker save` writes. */
  readonly file: string;
  readonly platforms: string;
}

/** Builds every image on the pinned base, for both platforms where buildx is there, else for this machine's own. */
export async function buildImages(
  folder: string,
  { version, commit }: ReleaseId,
  { node }: Pinned,
): Promise<BuiltImage[]> {
  const hasBuildx = await isThere("docker", "buildx", "version");
  const built: BuiltImage[] = [];
  for (const [image, how] of Object.entries(IMAGES)) {
    const name = `agent-relay/${image}:${version}`;
    const about = [
      "-f",
      "deploy/docker/Dockerfile",
      "-t",
      name,
      "--label",
      `org.opencontainers.image.revision=${commit}`,
    ];
    const args = [...about, "--build-arg", `NODE_IMAGE=${node}`, "--build-arg", `VERSION=${version}`, ...how];
    const file = `${image}-${version}.tar`;
    const path = join(folder, file);
    if (hasBuildx) {
      await run("docker", [
        "buildx",
        "build",
        "--platform",
        PLATFORMS,
        "--output",
        `type=oci,dest=${path}`,
        ...args,
        ".",
      ]);
      built.push({ name, file, platforms: PLATFORMS });
      continue;
    }
    await run("docker", ["build", ...args, "."]);
    await run("docker", ["save", "-o", path, name]);
    built.push({
      name,
      file,
      platforms: await run("docker", ["version", "--format", "{{.Server.Os}}/{{.Server.Arch}}"]),
    });
  }
  return built;
}
