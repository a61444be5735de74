import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../../deploy/keys.ts", import.meta.url));

/** Runs `npm run keys` on a keys file. */
export async function keysCommand(keysFile: string, args: readonly string[], stdin = "") {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: { ...process.env, RELAY_KEYS_FILE: keysFile } });
  child.stdin.on("error", () => undefined).end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: code as number | null, stdout, stderr };
}
