import names from "./base-images.json" with { type: "json" };
import { CommandError, run } from "./command.ts";

/** The images of others that the relay is built and run on: tags stand in `base-images.json`, digests are the registry's. */

export type BaseImage = keyof typeof names;
/** As `docker pull` takes it: `name@sha256:…`. */
export type Pinned = Readonly<Record<BaseImage, string>>;

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
