import { execFile } from "node:child_process";
import { glob, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** An earlier commit of a repository, checked out beside it with what is installed there; gone when it is disposed of. */
export interface EarlierTree extends AsyncDisposable {
  /** As short as git says it. */
  readonly commit: string;
  readonly folder: string;
}

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);

/** @throws Error when the repository does not have that commit. */
export async function earlierTree(commit: string, repository = REPOSITORY): Promise<EarlierTree> {
  const git = async (...words: readonly string[]) => (await run("git", ["-C", repository, ...words])).stdout.trim();
  const found = await git("rev-parse", "--short", "--verify", "--end-of-options", `${commit}^{commit}`).catch(
    (error) => {
      throw new Error(`The history here has no commit ${commit}; a shallow clone lacks most of it. ${error.stderr}`);
    },
  );
  await using stack = new AsyncDisposableStack();
  const folder = join(stack.use(await temporaryFolder()).path, "tree");
  await git("worktree", "add", "--detach", folder, found);
  stack.defer(async () => void (await git("worktree", "remove", "--force", folder)));
  await linkPackages(join(repository, "node_modules"), folder);
  const tree = stack.move();
  return { commit: found, folder, [Symbol.asyncDispose]: () => tree.disposeAsync() };
}

/** What is installed serves both trees; packages of the repository itself are the tree's own, by the names that it gives them. */
async function linkPackages(installed: string, tree: string): Promise<void> {
  const links = join(tree, "node_modules");
  await mkdir(links);
  const entries = (await readdir(installed, { withFileTypes: true })).filter((entry) => !entry.isSymbolicLink());
  await Promise.all(entries.map(({ name }) => symlink(join(installed, name), join(links, name))));
  const { workspaces } = JSON.parse(await readFile(join(tree, "package.json"), "utf8")) as { workspaces: string[] };
  for await (const manifest of glob(
    workspaces.map((folder) => `${folder}/package.json`),
    { cwd: tree },
  )) {
    const { name } = JSON.parse(await readFile(join(tree, manifest), "utf8")) as { name: string };
    await symlink(join(tree, dirname(manifest)), join(links, name));
  }
}
