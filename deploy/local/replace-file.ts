import { randomBytes } from "node:crypto";
import { type FileHandle, lstat, open, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const PERMISSIONS = 0o777;
/** What follows the name of the file. Earlier versions had no random part. */
const TEMPORARY = /^\.(?:[0-9a-f]{12}\.)?tmp$/;
/** Nobody writes for so long. */
const LEFT_BEHIND_MS = 60_000;

/**
 * Replaces a file, or creates it. A reader sees the whole file before or after, never a part: the new text is on disk before it is
 * renamed into place. Owner, group and mode stay as they were: whoever could read the file still can. Of a link the target is replaced.
 * @param newMode of a file that is not there yet.
 * @throws {Error} that says so when that is not possible; the file is then unchanged.
 */
export async function replaceFile(file: string, text: string | Buffer, newMode = 0o600): Promise<void> {
  const target = await targetOf(file);
  await removeLeftBehind(target);
  const temporary = `${target}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await using handle = await open(temporary, "wx", newMode);
    await giveAccessOf(target, handle);
    await handle.writeFile(text);
    await handle.sync();
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await using folder = await open(dirname(target), "r");
  await folder.sync();
}

/** The file itself, where links lead to one. @throws {Error} when a link leads nowhere: a file in its place would part the two names. */
export async function targetOf(file: string): Promise<string> {
  const target = await realpath(file).catch(undefinedIfMissing);
  if (target !== undefined) return target;
  // Another process may have made the file since: only a link leads nowhere.
  const found = await lstat(file).catch(undefinedIfMissing);
  if (found?.isSymbolicLink()) throw new Error(`${file} is a link to a file that is not there; it was not changed.`);
  // As whoever finds the file names it: two names would have two locks.
  return join(await realpath(dirname(file)), basename(file));
}

/** A process that died left its temporary file, which may hold secrets. That of a living process is newer. */
async function removeLeftBehind(target: string): Promise<void> {
  const [folder, name] = [dirname(target), basename(target)];
  const found = (await readdir(folder)).filter((one) => one.startsWith(name) && TEMPORARY.test(one.slice(name.length)));
  for (const temporary of found.map((one) => join(folder, one))) {
    const written = (await lstat(temporary).catch(undefinedIfMissing))?.mtimeMs ?? Number.NaN;
    if (Date.now() - written > LEFT_BEHIND_MS) await rm(temporary, { force: true });
  }
}

async function giveAccessOf(file: string, to: FileHandle): Promise<void> {
  const [wanted, own] = [await stat(file).catch(undefinedIfMissing), await to.stat()];
  if (wanted === undefined) return;
  const { uid, gid, mode } = wanted;
  if (uid !== own.uid || gid !== own.gid) {
    await to.chown(uid, gid).catch(() => {
      throw new Error(
        `${file} belongs to user ${uid} and group ${gid}, and this user (${own.uid}) cannot give them the file that would take its place. Run the command as that user, or as root. It was not changed.`,
      );
    });
  }
  await to.chmod(mode & PERMISSIONS);
}

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
