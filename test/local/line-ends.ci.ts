import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { freePort } from "../support/free-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { ROOT, runLines } from "./terminal.ts";

/** What is no part of a checkout, or of what `npm start` runs. */
const LEFT_OUT = /^(\.|test$|node_modules$)/;

test("A checkout whose lines end with CRLF starts, and hands out the same packages", async () => {
  const [lf, crlf] = [await copyWithLines("\n"), await copyWithLines("\r\n")];
  await using _ = lf;
  await using checkout = crlf;
  const env = { ...process.env, PORT: String(await freePort()), REDIS_URL: "", RELAY_KEYS_FILE: "" };
  const relay = runLines("exec npm start", env, checkout.path);
  await relay.says("Agent Relay is up.");
  await relay.interrupt();

  await promisify(execFile)("npm", ["run", "packages"], { cwd: lf.path });
  expect(await packagesIn(checkout.path)).toEqual(await packagesIn(lf.path));
}, 180_000);

async function packagesIn(checkout: string): Promise<unknown> {
  return JSON.parse(await readFile(join(checkout, ".local/packages/index.json"), "utf8"));
}

/** A copy of the repository. @param end of each line. */
async function copyWithLines(end: string) {
  const copy = await temporaryFolder();
  const names = (await readdir(ROOT)).filter((name) => !LEFT_OUT.test(name));
  const filter = (path: string) => !/node_modules|__pycache__/.test(path.slice(ROOT.length));
  for (const name of names) await cp(join(ROOT, name), join(copy.path, name), { recursive: true, filter });
  for (const entry of await readdir(copy.path, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    await writeFile(file, (await readFile(file, "latin1")).replaceAll("\n", end), "latin1");
  }
  await linkPackages(join(ROOT, "node_modules"), join(copy.path, "node_modules"));
  return copy;
}

/** Those of npm's registry as they are; those of the checkout lead to it. */
async function linkPackages(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = entry.isSymbolicLink() ? await readlink(source) : source;
    await symlink(target, join(to, entry.name));
  }
}
