import { type FileHandle, lstat, open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";

const PERMISSIONS = 0o777;

/**
 * Replaces a file, or creates it. A reader sees the whole file before or after, never a part: the new text is on disk before it is
 * renamed into place. Owner, group and mode stay as they were: whoever could read the file still can. Of a link the target is replaced.
 * @param newMode of a file that is not there yet.
 * @throws {Error} that says so when that is not possible; the file is then unchanged.
 */
export async function replaceFile(file: string, text: string | Buffer, newMode = 0o600): Promise<void> {
  const target = await targetOf(file);
  const temporary = `${target}.tmp`;
  // One that a process left behind which died.
  await rm(temporary, { force: true });
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
  if ((await lstat(file).catch(undefinedIfMissing)) === undefined) return file;
  throw new Error(`${file} is a link to a file that is not there; it was not changed.`);
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
