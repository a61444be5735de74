import { chmod, chown, lchown, lstat, mkdir, readdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { readKeys } from "../keys/store.ts";
import { developmentKeys, developmentKeysFile } from "../local/dev-keys.ts";
import { replaceFile } from "../local/replace-file.ts";

/**
 * Runs once in compose, as root: copies the keys file to where the services read it.
 * The keys come from the file that RELAY_KEYS_FILE names on the host; without one they are the development keys of
 * `npm start`, made when there are none. Run again after a change, and the services load the new keys within 5 s, without a
 * restart. Exit code 1: the file is invalid or not there, and the current one stays; or `npm start` runs on the development keys.
 */

/** The host's folder of development keys. Its owner becomes the owner of all files that are made in it. */
const FOLDER = "/local";
/** The file that RELAY_KEYS_FILE names; /dev/null when it is unset. */
const GIVEN = "/given/keys.json";
/** The part of the folder that the services see. */
const SERVED = join(FOLDER, "compose");
const SERVICES_GROUP = 1000;

const { uid, gid } = await stat(FOLDER);
const given = await stat(GIVEN);
// Docker makes a folder of a path where nothing is: a name that was mistyped must not put the development keys in force.
if (given.isDirectory()) refuse(new Error("RELAY_KEYS_FILE names no file"));
const agents = given.isFile() ? undefined : await developmentKeys(FOLDER, "listed").catch(refuse);
await serve(await readKeys(agents === undefined ? GIVEN : developmentKeysFile(FOLDER)));
for (const path of (await readdir(FOLDER)).map((name) => join(FOLDER, name))) {
  // What root owns was made here; a key or a log that its owner gave to a service stays with that service.
  if ((await lstat(path)).uid === 0) await lchown(path, uid, gid);
}

process.stdout.write(agents === undefined ? "keys: those of RELAY_KEYS_FILE\n" : "keys: development keys\n");

function refuse(error: unknown): never {
  process.stderr.write(`keys: ${(error as Error).message}\n`);
  process.exit(1);
}

/** Atomic: the services see the whole file before or after, and only ever a file that they may read. */
async function serve(keys: object): Promise<void> {
  await mkdir(SERVED, { recursive: true, mode: 0o755 });
  const file = join(SERVED, "keys.json");
  await replaceFile(`${file}.new`, `${JSON.stringify(keys, null, 2)}\n`);
  await chown(`${file}.new`, uid, SERVICES_GROUP);
  await chmod(`${file}.new`, 0o640);
  await rename(`${file}.new`, file);
}
