import { randomBytes } from "node:crypto";
import { chmod, chown, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Who may read a file; nobody may write it. */
interface Reader {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** The file that start.sh's variables come from. */
const OF_REDIS = "redis.env";
const VARIABLE = /^(REDIS_PASSWORD_[A-Z_]+)=([0-9a-f]{64})$/gm;

/**
 * Makes a random password for each Redis user that has none yet, and gives it to Redis and to the service that is this
 * user, each in an environment file of its own.
 * @param folder keeps them; what is there stays, that of users which are not named this time, too: those of a Redis Cluster, say.
 * @param redis who runs Redis.
 * @param url of Redis, without a user.
 * @param users the group of each user's service, by the user's name.
 */
export async function giveRedisPasswords(
  folder: string,
  redis: { readonly uid: number; readonly gid: number },
  users: ReadonlyMap<string, { readonly uid: number; readonly gid: number }>,
  url: string,
): Promise<void> {
  const lasting = [...(await textIn(join(folder, OF_REDIS))).matchAll(VARIABLE)];
  const kept = new Map(lasting.map(([, variable, password]) => [variable, password]));
  const passwords = new Map(
    [...users.keys()].map((user) => [user, kept.get(variableOf(user)) ?? randomBytes(32).toString("hex")]),
  );
  for (const [user, password] of passwords) kept.set(variableOf(user), password);
  const lines = [...kept].map(([variable, password]) => `${variable}=${password}\n`);
  // First, so that a run that ends here is repeated with the same passwords.
  await replace(join(folder, OF_REDIS), lines.join(""), { ...redis, mode: 0o400 });
  for (const [user, owner] of users) {
    const own = url.replace("://", `://${user}:${passwords.get(user)}@`);
    await replace(join(folder, `${user}.env`), `REDIS_URL=${own}\n`, { ...owner, mode: 0o440 });
  }
}

function variableOf(user: string): string {
  return `REDIS_PASSWORD_${user.toUpperCase().replaceAll("-", "_")}`;
}

/** Empty when there is no such file. */
async function textIn(file: string): Promise<string> {
  return await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
}

/** Atomic: whoever reads the file reads the whole one, and only its reader does. */
async function replace(file: string, text: string, { uid, gid, mode }: Reader): Promise<void> {
  const next = `${file}.new`;
  await writeFile(next, text, { mode: 0o600 });
  await chown(next, uid, gid);
  await chmod(next, mode);
  await rename(next, file);
}
