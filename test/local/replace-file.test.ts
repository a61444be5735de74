import { chown, lstat, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { fileError, writePrivateFile } from "../../deploy/keys/store.ts";
import { replaceFile, targetOf } from "../../deploy/local/replace-file.ts";
import { runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SOURCE = new URL("../../deploy/local/replace-file.ts", import.meta.url).href;
const NOBODY = 65_534;
/** Root alone can give files away, and become another user. */
const asRoot = process.getuid?.() === 0 ? test : test.skip;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let file: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder.path, "keys.json");
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

const accessOf = async (path: string) => {
  const { uid, gid, mode } = await stat(path);
  return { uid, gid, mode: mode & 0o777 };
};

describe("A file that is replaced", () => {
  test.each([0o600, 0o640, 0o444])("keeps its mode, %#", async (mode) => {
    await writeFile(file, "old", { mode });
    await replaceFile(file, "new");
    expect([await readFile(file, "utf8"), (await accessOf(file)).mode]).toEqual(["new", mode]);
  });

  asRoot("keeps its owner and group where root replaces it, so that they can read it", async () => {
    await writeFile(file, "old", { mode: 0o600 });
    await chown(file, NOBODY, NOBODY);
    await replaceFile(file, "new");
    expect(await accessOf(file)).toEqual({ uid: NOBODY, gid: NOBODY, mode: 0o600 });
  });

  asRoot("stays as it is where a user replaces it who cannot give it its owner", async () => {
    await writeFile(file, "old", { mode: 0o644 });
    await chown(folder.path, NOBODY, NOBODY);
    // It loads what it needs first: the repository may be root's alone.
    const program = `const { replaceFile } = await import(${JSON.stringify(SOURCE)});
      process.setegid(${NOBODY}); process.seteuid(${NOBODY});
      await replaceFile(${JSON.stringify(file)}, "new").catch(({ message }) => console.log(message));`;
    const { stdout } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stdout).toMatch(/keys\.json belongs to user 0 and group 0, .* It was not changed\.\n$/);
    expect([await readFile(file, "utf8"), await readdir(folder.path)]).toEqual(["old", ["keys.json"]]);
  });

  test("is its owner's alone where it is new", async () => {
    await replaceFile(file, "new");
    expect((await accessOf(file)).mode).toBe(0o600);
  });

  test("is the target of a link, which stays, and none where the target is gone", async () => {
    const target = join(folder.path, "target.json");
    await writeFile(target, "old", { mode: 0o640 });
    await symlink("target.json", file);
    await replaceFile(file, "new");
    expect([await readFile(target, "utf8"), (await accessOf(target)).mode]).toEqual(["new", 0o640]);
    await rename(target, `${target}.away`);
    await expect(replaceFile(file, "newer")).rejects.toThrow(/keys\.json is a link to a file that is not there/);
    expect((await lstat(file)).isSymbolicLink()).toBe(true);
  });

  test("leaves nothing of a process that died, and what is new to whoever may be writing it", async () => {
    const [old, former, young] = ["0123456789ab.", "", "ba9876543210."].map((random) => `keys.json.${random}tmp`);
    const others = ["keys.json.mine.tmp", "other.keys.json.tmp"];
    for (const name of [old, former, young, ...others]) await writeFile(join(folder.path, name as string), "half");
    for (const name of [old, former, ...others]) await utimes(join(folder.path, name as string), 1, 1);
    await replaceFile(file, "new");
    expect((await readdir(folder.path)).sort()).toEqual(["keys.json", ...others, young].sort());
  });

  test("has one name while another process makes it, also behind a link to its folder", async () => {
    await symlink(".", join(folder.path, "link"));
    const names = new Set<string>();
    for (let round = 0; round < 100; round += 1) {
      const linked = join(folder.path, "link", "keys.json");
      const looks = Array.from({ length: 10 }, () => targetOf(linked));
      const made = writeFile(file, "new");
      for (const name of await Promise.all(looks)) names.add(name);
      await made;
      names.add(await targetOf(linked));
      await rm(file);
    }
    expect([...names]).toEqual([file]);
  });

  test("is whole after several replace it at once", async () => {
    const texts = Array.from({ length: 20 }, (_, n) => `${n}`.repeat(10_000));
    await Promise.all(texts.map((text) => replaceFile(file, text)));
    expect([texts.includes(await readFile(file, "utf8")), await readdir(folder.path)]).toEqual([true, ["keys.json"]]);
  });
});

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
  const value = {
    toJSON() {
      throw failed("ENOSPC");
    },
  };
  await expect(writePrivateFile(file, value)).rejects.toThrow(`${file} cannot be written (ENOSPC). The disk is full`);
  expect(await readdir(folder.path)).toEqual([]);
});
