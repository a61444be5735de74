import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { run as runAdmin } from "../../deploy/admin/run.ts";
import { run as runKeys } from "../../deploy/keys/run.ts";
import type { Io } from "../../deploy/local/io.ts";
import { run as runReset } from "../../deploy/redis/window-reset.ts";

/** Runs a command to its end, in this process. */
async function ended(
  run: (args: string[], io: Io) => Promise<number>,
  args: readonly string[],
  env: Io["env"],
  stdin: string | Uint8Array = "",
) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await run([...args], { env, stdin: Readable.from([stdin]), stdout, stderr });
  stdout.end();
  stderr.end();
  return { code, stdout: await text(stdout), stderr: await text(stderr) };
}

/** Where no relay answers: fetch and websockets connect to no such port. */
const NOWHERE = "http://127.0.0.1:9";

/** `npm run keys`, on a keys file. */
export const keysCommand = (keysFile: string, args: readonly string[], stdin?: string | Uint8Array) =>
  ended(runKeys, args, { RELAY_KEYS_FILE: keysFile, RELAY_URL: NOWHERE }, stdin);

/** `npm run admin`. */
export const adminCommand = (args: readonly string[], env: Io["env"]) => ended(runAdmin, args, env);

/** `npm run window:reset`. */
export const resetCommand = (args: readonly string[], env: Io["env"]) => ended(runReset, args, env);
