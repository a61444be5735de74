import { cp, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { makePackages } from "../../deploy/packages/make.ts";
import { freePort } from "../support/free-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { ROOT, runLines } from "./terminal.ts";

/** What is no part of a checkout, or of what `npm start` runs. */
const LEFT_OUT = /^(\.|test$|node_modules$)/;

test("A checkout whose lines end with CRLF starts, and hands out the same packages", async () => {
  await using checkout = await temporaryFolder();
  await copyWithCrlf(checkout.path);
  const env = { ...process.env, PORT: String(await freePort()), REDIS_URL: "", RELAY_KEYS_FILE: "" };
  const relay = runLines("exec npm start", env, checkout.path);
  await relay.says("Agent Relay is up.");
  await relay.interrupt();

  const made = JSON.parse(await readFile(join(checkout.path, ".local/packages/index.json"), "utf8"));
  expect(made).toEqual(await makePackages(join(checkout.path, "made-with-lf")));
}, 120_000);

async function copyWithCrlf(folder: string): Promise<void> {
  const names = (await readdir(ROOT)).filter((name) => !LEFT_OUT.test(name));
  const filter = (path: string) => !/node_modules|__pycache__/.test(path.slice(ROOT.length));
  for (const name of names) await cp(join(ROOT, name), join(folder, name), { recursive: true, filter });
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) await endWithCrlf(join(entry.parentPath, entry.name));
  }
  await linkPackages(join(ROOT, "node_modules"), join(folder, "node_modules"));
}

async function endWithCrlf(file: string): Promise<void> {
  await writeFile(file, (await readFile(file, "latin1")).replaceAll("\n", "\r\n"), "latin1");
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
