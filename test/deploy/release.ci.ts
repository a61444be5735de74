import { execFile } from "node:child_process";
import { chmod, cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { hasSection } from "../../deploy/release/tree.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** `npm run release` in a tree of its own, with a docker that writes down what it was asked for. */

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const DIGEST = `sha256:${"a".repeat(64)}`;
/** What docker is in these tests: it notes its arguments, and makes the files that it is asked for. */
const DOCKER = `#!/bin/sh
printf '%s\\n' "$*" >> "$DOCKER_NOTES"
case "$1 $2" in
  "pull "*) [ -z "$DOCKER_NO_REGISTRY" ] || { echo "no such host" >&2; exit 1; } ;;
  "image inspect") printf '["%s@${DIGEST}"]' "\${5%%:*}" ;;
  "buildx version") [ -n "$DOCKER_BUILDX" ] || exit 1 ;;
  "buildx build") for word in "$@"; do case "$word" in type=oci,dest=*) echo image > "\${word#type=oci,dest=}" ;; esac; done ;;
  "save -o") echo image > "$3" ;;
  "version "*) echo linux/amd64 ;;
esac
`;
const run = promisify(execFile);

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let tree: string;
let notes: string;
let to: string;

beforeAll(async () => {
  folder = await temporaryFolder();
  tree = join(folder.path, "tree");
  await mkdir(join(folder.path, "bin"));
  await writeFile(join(folder.path, "bin/docker"), DOCKER);
  await chmod(join(folder.path, "bin/docker"), 0o755);
  await copyOfThisTree();
});
afterAll(async () => await folder[Symbol.asyncDispose]());
beforeEach(async () => {
  notes = join(folder.path, "notes");
  to = join(folder.path, "release");
  await writeFile(notes, "");
});

/** With a changelog that has a section for the version, all of it committed and tagged. */
async function copyOfThisTree(): Promise<void> {
  const { stdout } = await run("git", [
    "-C",
    REPOSITORY,
    "ls-files",
    "-z",
    "--cached",
    "--others",
    "--exclude-standard",
  ]);
  for (const file of stdout.split("\0").filter(Boolean)) {
    await cp(join(REPOSITORY, file), join(tree, file)).catch((error) => {
      if (error.code !== "ENOENT") throw error;
    });
  }
  await symlink(join(REPOSITORY, "node_modules"), join(tree, "node_modules"));
  const changelog = join(tree, "CHANGELOG.md");
  const text = await readFile(changelog, "utf8");
  await writeFile(changelog, text.replace("## Unreleased", "## Unreleased\n\n## 1.0.0 - 2026-01-01"));
  await git("init", "--quiet");
  await writeFile(join(tree, ".git/info/exclude"), "node_modules\n");
  await git("add", "--all");
  await git("commit", "--quiet", "--message", "a release");
  await git("tag", "v1.0.0");
}

async function git(...words: readonly string[]): Promise<void> {
  const who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
  await run("git", ["-C", tree, ...who, ...words]);
}

async function release(environment: Record<string, string> = {}) {
  const env = {
    ...process.env,
    PATH: `${join(folder.path, "bin")}:${process.env.PATH}`,
    DOCKER_NOTES: notes,
    ...environment,
  };
  const ended = run(process.execPath, ["deploy/release/main.ts", "--to", `${to}/`], { cwd: tree, env });
  return await ended.then(
    ({ stdout }) => ({ code: 0, said: stdout }),
    ({ code, stderr }) => ({ code, said: stderr as string }),
  );
}

const asked = async () => (await readFile(notes, "utf8")).trim().split("\n");
const made = async (file: string) => await readFile(join(to, file), "utf8");

describe("a release", () => {
  test("has images for both platforms where buildx is there, on base images by digest, and publishes none", async () => {
    expect(await release({ DOCKER_BUILDX: "1" })).toMatchObject({
      code: 0,
      said: expect.stringContaining("nothing is published"),
    });
    const calls = await asked();
    const builds = calls.filter((call) => call.startsWith("buildx build"));
    expect(builds).toHaveLength(5);
    for (const build of builds) {
      expect(build).toContain("--platform linux/amd64,linux/arm64");
      expect(build).toContain(`NODE_IMAGE=node@${DIGEST}`);
      expect(build).toContain("VERSION=1.0.0");
    }
    expect(calls.filter((call) => /\bpush\b/.test(call))).toEqual([]);
    const { version, base_images, images } = JSON.parse(await made("release.json"));
    expect(version).toBe("1.0.0");
    expect(base_images).toMatchObject({ node: `node@${DIGEST}`, redis: `redis@${DIGEST}`, nginx: `nginx@${DIGEST}` });
    expect(images.map(({ name }: { name: string }) => name)).toEqual([
      "agent-relay/gateway:1.0.0",
      "agent-relay/ws-connector:1.0.0",
      "agent-relay/ops-reporting:1.0.0",
      "agent-relay/setup:1.0.0",
      "agent-relay/all:1.0.0",
    ]);
  });

  test("says for which platform its images are where buildx is not there", async () => {
    expect(await release()).toMatchObject({
      code: 0,
      said: expect.stringContaining("agent-relay/all:1.0.0 for linux/amd64\n"),
    });
    expect((await asked()).filter((call) => call.startsWith("build "))).toHaveLength(5);
  });

  test("has the connectors' packages, a bill of materials of what runs, and checksums of every file", async () => {
    expect(await release()).toMatchObject({ code: 0 });
    const { bomFormat, components } = JSON.parse(await made("sbom.cdx.json"));
    expect(bomFormat).toBe("CycloneDX");
    const names = components.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(["koa", "ioredis", "ws", "zod"]));
    expect(names.filter((name: string) => /^(?:jest|esbuild|typescript|testcontainers)$/.test(name))).toEqual([]);
    const { packages } = JSON.parse(await made("release.json"));
    expect(packages.length).toBeGreaterThanOrEqual(3);
    const { stdout } = await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: to });
    const checked = stdout.trim().split("\n");
    expect(checked.every((line) => line.endsWith(": OK"))).toBe(true);
    const expected = [
      ...packages.map((file: string) => `packages/${file}`),
      "gateway-1.0.0.tar",
      "release.json",
      "sbom.cdx.json",
    ];
    expect(checked.map((line) => line.replace(/: OK$/, ""))).toEqual(expect.arrayContaining(expected));
  });

  test("replaces the release in its folder, and nothing else", async () => {
    await release();
    expect(await release()).toMatchObject({ code: 0 });
    await rm(join(to, "release.json"));
    expect(await release()).toMatchObject({ code: 1, said: expect.stringContaining("holds no release") });
    expect(await made("SHA256SUMS")).toContain("gateway-1.0.0.tar");
    await rm(to, { recursive: true });
  });

  test("is refused where no registry gives the digests of its base images", async () => {
    const { code, said } = await release({ DOCKER_NO_REGISTRY: "1" });
    expect(code).toBe(1);
    expect(said).toContain("No registry gives a digest for");
    expect((await asked()).filter((call) => /\bbuild\b/.test(call))).toEqual([]);
  });

  test("is refused of files that are not committed, and of a commit without the tag of its version", async () => {
    await writeFile(join(tree, "left-over"), "");
    expect(await release()).toMatchObject({ code: 1, said: expect.stringContaining("left-over") });
    await git("add", "--all");
    await git("commit", "--quiet", "--message", "another");
    expect(await release()).toMatchObject({
      code: 1,
      said: expect.stringContaining("The tag v1.0.0 is on another commit"),
    });
    await git("tag", "--delete", "v1.0.0");
    expect(await release()).toMatchObject({ code: 1, said: expect.stringContaining("The tag v1.0.0 is missing") });
    expect(await asked()).toEqual([""]);
  });
});

test.each([
  ["## 1.0.0 - 2026-11-26", true],
  ["## [1.0.0] - 2026-11-26", true],
  ["## 1.0.0", false],
  ["## 1.0.01 - 2026-11-26", false],
  ["## Unreleased", false],
])("a changelog with %j has a section for 1.0.0: %j", (heading, is) => {
  expect(hasSection(`# Changelog\n\n${heading}\n\n### Added\n`, "1.0.0")).toBe(is);
});
