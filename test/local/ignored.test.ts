import { execFileSync } from "node:child_process";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { temporaryFolder } from "../support/temporary-folder.ts";

const INNER = ".local/.gitignore";
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

test.each([
  ["as it was cloned", [".gitignore", INNER]],
  ["made anew by npm start", [".gitignore"]],
])("git adds no private key of the folder .local, %s", async (_, added) => {
  await using clone = await temporaryFolder();
  await mkdir(join(clone.path, ".local"));
  await copyFile(join(ROOT, ".gitignore"), join(clone.path, ".gitignore"));
  if (added.includes(INNER)) await writeFile(join(clone.path, INNER), "*\n!.gitignore\n");
  for (const name of ["alice.json", "issuer.json"]) await writeFile(join(clone.path, ".local", name), "{}");
  const git = (...args: string[]) => execFileSync("git", args, { cwd: clone.path, encoding: "utf8" });
  git("init", "--quiet");
  git("add", "--all");
  expect(git("ls-files").trim().split("\n")).toEqual(added);
});
