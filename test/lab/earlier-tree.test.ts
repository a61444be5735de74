import { execFileSync } from "node:child_process";
import { access, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { earlierTree } from "./earlier-tree.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let repository: string;

/** Its package has another name in each commit, and says which one it is of; `installed` is none of its own. */
beforeAll(async () => {
  folder = await temporaryFolder();
  repository = join(folder.path, "repository");
  await mkdir(join(repository, "shared/window"), { recursive: true });
  await writeFile(join(repository, "package.json"), `{ "workspaces": ["shared/*"] }`);
  git("init", "--quiet");
  await writeFile(join(repository, ".gitignore"), "node_modules/\n");
  await commit("before");
  await commit("after");
  await mkdir(join(repository, "node_modules/installed"), { recursive: true });
  await writeFile(join(repository, "node_modules/installed/says"), "installed");
  await symlink("../shared/window", join(repository, "node_modules/after"));
});

afterAll(async () => await folder[Symbol.asyncDispose]());

function git(...words: readonly string[]): string {
  const who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
  return execFileSync("git", ["-C", repository, ...who, ...words], { encoding: "utf8", stdio: "pipe" });
}

async function commit(text: string): Promise<void> {
  await writeFile(join(repository, "shared/window/says"), text);
  await writeFile(join(repository, "shared/window/package.json"), JSON.stringify({ name: text }));
  git("add", "--all");
  git("commit", "--quiet", "--message", text);
}

describe("The tree of an earlier commit", () => {
  test("has that commit's own packages, and the others that are installed", async () => {
    await using tree = await earlierTree("HEAD~1", repository);
    const said = (name: string) => readFile(join(tree.folder, "node_modules", name, "says"), "utf8");
    expect([await said("before"), await said("installed")]).toEqual(["before", "installed"]);
    expect(git("rev-parse", "HEAD~1").startsWith(tree.commit)).toBe(true);
  });

  test("is gone afterwards, and the repository knows nothing of it", async () => {
    const tree = await earlierTree("HEAD~1", repository);
    await tree[Symbol.asyncDispose]();
    await expect(access(tree.folder)).rejects.toThrow("ENOENT");
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
    expect(await readFile(join(repository, "node_modules/installed/says"), "utf8")).toBe("installed");
  });

  test("is refused where the history does not reach as far, with that reason", async () => {
    const shallow = join(folder.path, "shallow");
    git("clone", "--quiet", "--depth=1", pathToFileURL(repository).href, shallow);
    await expect(earlierTree("HEAD~1", shallow)).rejects.toThrow("The history here has no commit HEAD~1");
  });
});
