import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** What a release is made of, read from the repository: its version, its commit, its packages, the sums of its files. */

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const execute = promisify(execFile);
const MOST_OUTPUT_BYTES = 64 * 1024 * 1024;

/** A program did not run, or ended with an error; the message is the last line of what it said. */
export class CommandError extends Error {}

/** Runs a program of the PATH in the repository. @returns what it printed, trimmed. @throws CommandError */
export async function run(program: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await execute(program, args, { cwd: ROOT, maxBuffer: MOST_OUTPUT_BYTES });
    return stdout.trim();
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    const said = stderr.trim().split("\n").at(-1);
    throw new CommandError(`${program} ${args[0]}: ${said || message}`, { cause: error });
  }
}

/** Whether a program, and this part of it, is there. */
export async function isThere(program: string, ...args: readonly string[]): Promise<boolean> {
  return await run(program, args).then(
    () => true,
    () => false,
  );
}

/** A line for each file below the folder, by name, as `sha256sum --check` reads them. */
export async function checksumsOf(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const names = files.map((file) => relative(folder, file)).sort();
  const lines = names.map(async (name) => `${await sha256(join(folder, name))}  ${name}\n`);
  return (await Promise.all(lines)).join("");
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

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

const SERVICES = ["gateway", "ws-connector", "ops-reporting"] as const;
const INSTALLED = "node_modules/";

interface LockFile {
  readonly packages: Readonly<Record<string, { devDependencies?: unknown }>>;
}

/**
 * What the services consist of, from the lock file alone: a CycloneDX document in JSON. It is made of a copy that knows no dependencies
 * of development: `npm sbom --omit dev` leaves out what anybody needs for development, also where a service runs on it.
 */
export async function billOfMaterials(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "agent-relay-sbom-"));
  try {
    await copyWithoutDevelopment(folder);
    const services = SERVICES.flatMap((service) => ["--workspace", `services/${service}`]);
    const form = ["--sbom-format", "cyclonedx", "--package-lock-only"];
    return await run("npm", ["sbom", "--prefix", folder, ...form, ...services]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function copyWithoutDevelopment(folder: string): Promise<void> {
  const lock: LockFile = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8"));
  for (const [path, entry] of Object.entries(lock.packages)) {
    entry.devDependencies = undefined;
    if (path.includes(INSTALLED)) continue;
    const { devDependencies, ...manifest } = JSON.parse(await readFile(join(ROOT, path, "package.json"), "utf8"));
    await mkdir(join(folder, path), { recursive: true });
    await writeFile(join(folder, path, "package.json"), JSON.stringify(manifest));
  }
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(lock));
}
