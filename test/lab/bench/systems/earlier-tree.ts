import { execFile } from "node:child_process";
import { mkdir, readdir, readlink, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

/** An earlier commit of a repository, checked out beside it with what is installed there; gone when it is disposed of. */
export interface EarlierTree extends AsyncDisposable {
  /** As short as git says it. */
  readonly commit: string;
  readonly folder: string;
}

const REPOSITORY = fileURLToPath(new URL("../../../../", import.meta.url));
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
  await linkPackages(join(repository, "node_modules"), join(folder, "node_modules"));
  const tree = stack.move();
  return { commit: found, folder, [Symbol.asyncDispose]: () => tree.disposeAsync() };
}

/**
 * What is installed, for both trees, one by one: the links among it lead to the packages of the repository itself, and the same
 * links have to lead to those of the other tree there.
 */
async function linkPackages(installed: string, links: string): Promise<void> {
  await mkdir(links);
  const entries = await readdir(installed, { withFileTypes: true });
  await Promise.all(
    entries.map(async (entry) => {
      const path = join(installed, entry.name);
      await symlink(entry.isSymbolicLink() ? await readlink(path) : path, join(links, entry.name));
    }),
  );
}
