import { join } from "node:path";
import names from "./base-images.json" with { type: "json" };
import { CommandError, isThere, type ReleaseId, run } from "./tree.ts";

/** The images that are the relay's own, each with what tells it from the others in the Dockerfile. */
const IMAGES = {
  gateway: ["--build-arg", "SERVICE=gateway"],
  "ws-connector": ["--build-arg", "SERVICE=ws-connector"],
  "ops-reporting": ["--build-arg", "SERVICE=ops-reporting"],
  setup: ["--target", "setup"],
  all: ["--target", "all"],
} as const;
const PLATFORMS = "linux/amd64,linux/arm64";

interface BuiltImage {
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

/** The images of others that the relay is built and run on: tags stand in `base-images.json`, digests are the registry's. */

type BaseImage = keyof typeof names;
/** As `docker pull` takes it: `name@sha256:…`. */
type Pinned = Readonly<Record<BaseImage, string>>;

/**
 * What the registry has under each tag today.
 * @throws CommandError where it gives no digest: a tag alone may be another image tomorrow, and a release is not made of those.
 */
export async function pinnedBaseImages(): Promise<Pinned> {
  const pinned = Object.entries(names).map(async ([key, name]) => [key, await digestOf(name)] as const);
  return Object.fromEntries(await Promise.all(pinned)) as Pinned;
}

async function digestOf(name: string): Promise<string> {
  try {
    await run("docker", ["pull", "--quiet", name]);
  } catch (error) {
    throw noDigest(name, error);
  }
  const digests = JSON.parse(await run("docker", ["image", "inspect", "--format", "{{json .RepoDigests}}", name]));
  const [first] = Array.isArray(digests) ? digests : [];
  if (typeof first !== "string" || !/@sha256:[0-9a-f]{64}$/.test(first)) throw noDigest(name);
  return first;
}

function noDigest(name: string, cause?: unknown): CommandError {
  const why = cause instanceof Error ? ` (${cause.message})` : "";
  return new CommandError(
    `No registry gives a digest for ${name}${why}. A release names its base images by digest: run it where a registry answers.`,
    { cause },
  );
}
