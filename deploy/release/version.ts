import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT, run } from "./command.ts";

/** What keeps this tree from being a release. */
export class NotAReleaseError extends Error {}

/** A tree that is one: its commit has the tag of its version. */
export interface ReleaseId {
  readonly version: string;
  readonly commit: string;
}

/**
 * The release that the checked out commit is.
 * @throws NotAReleaseError where files are changed, the changelog has no section for the version, or the tag is missing or of
 *   another commit.
 */
export async function releaseId(): Promise<ReleaseId> {
  const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  const commit = await run("git", ["rev-parse", "HEAD"]);
  const changed = await run("git", ["status", "--porcelain"]);
  if (changed !== "") throw new NotAReleaseError(`Commit or remove these first:\n${changed}`);
  const changelog = await readFile(join(ROOT, "CHANGELOG.md"), "utf8");
  if (!hasSection(changelog, version)) {
    throw new NotAReleaseError(
      `CHANGELOG.md has no section for ${version}: name it there, as "## ${version} - <date>".`,
    );
  }
  const tag = `v${version}`;
  const tagged = await run("git", ["rev-list", "-n", "1", tag]).catch(() => "");
  if (tagged !== commit) {
    throw new NotAReleaseError(`The tag ${tag} is ${tagged === "" ? "missing" : "on another commit"}: git tag ${tag}`);
  }
  return { version, commit };
}

/** Pure. Source: docs/upgrading.md#releases. */
export function hasSection(changelog: string, version: string): boolean {
  const heading = /^## \[?([^\s\]]+)\]? - \d{4}-\d{2}-\d{2}$/gm;
  return [...changelog.matchAll(heading)].some(([, named]) => named === version);
}
