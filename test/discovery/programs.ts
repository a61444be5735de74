import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const BIN_FOLDERS = {
  redocly: new URL("../../node_modules/.bin/", import.meta.url),
  "openapi-typescript": new URL("node_modules/.bin/", import.meta.url),
  tsc: new URL("node_modules/.bin/", import.meta.url),
};

/** Runs an installed program in `folder`, off the network. Rejects, with what it printed, when it fails. */
export async function run(program: keyof typeof BIN_FOLDERS, args: readonly string[], folder: string): Promise<string> {
  const path = fileURLToPath(new URL(program, BIN_FOLDERS[program]));
  const env = { ...process.env, CI: "true", REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  // Jest's own options are not for the programs it starts.
  delete (env as Record<string, string | undefined>).NODE_OPTIONS;
  const { stdout } = await promisify(execFile)(path, [...args], { cwd: folder, env, maxBuffer: 2 ** 25 });
  return stdout;
}

/** Writes a file into a folder; returns its name. */
export async function put(folder: string, name: string, text: string): Promise<string> {
  await writeFile(join(folder, name), text);
  return name;
}
