import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { fileError } from "../../deploy/keys/file-error.ts";
import { writePrivateFile } from "../../deploy/keys/private-file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const failed = (code: string) => Object.assign(new Error("x"), { code });

test.each([
  ["read", "EACCES", "f cannot be read (EACCES). This user may not read it: run the command as its owner, or as root."],
  [
    "changed",
    "EPERM",
    "f cannot be changed (EPERM). This user may not write to its folder: run the command as the owner, or as root.",
  ],
  ["changed", "ENOSPC", "f cannot be changed (ENOSPC). The disk is full: make room, then run the command again."],
  ["written", "EROFS", "f cannot be written (EROFS). Its file system is read-only: name a file elsewhere."],
  ["changed", "EIO", "f cannot be changed (EIO)."],
] as const)("A file that cannot be %s for %s is named, with what to do", (use, code, message) => {
  expect(fileError("f", use, failed(code)).message).toBe(message);
});

test("Of a private file that the disk has no room for nothing is left, and the error names it", async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "issuer.json");
  const value = {
    toJSON() {
      throw failed("ENOSPC");
    },
  };
  await expect(writePrivateFile(file, value)).rejects.toThrow(`${file} cannot be written (ENOSPC). The disk is full`);
  expect(await readdir(folder.path)).toEqual([]);
});
