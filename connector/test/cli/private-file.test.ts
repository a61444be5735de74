import { chown, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { runProgram } from "../../../test/support/run-program.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { replacePrivateFile } from "../../src/cli/private-file.ts";

const SOURCE = new URL("../../src/cli/private-file.ts", import.meta.url).href;
const NOBODY = 65_534;
/** Root alone can give files away, and become another user. */
const asRoot = process.getuid?.() === 0 ? test : test.skip;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let file: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder.path, "bob.json");
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

describe("A key file that gets another content", () => {
  test("keeps its mode, and the link that leads to it", async () => {
    await writeFile(join(folder.path, "target.json"), "{}", { mode: 0o640 });
    await symlink("target.json", file);
    await replacePrivateFile(file, { key_id: "new" });
    expect(JSON.parse(await readFile(join(folder.path, "target.json"), "utf8"))).toEqual({ key_id: "new" });
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readdir(folder.path)).toEqual(["bob.json", "target.json"]);
  });

  asRoot("keeps its owner where root writes it, so that the agent that runs can read it", async () => {
    await writeFile(file, "{}", { mode: 0o600 });
    await chown(file, NOBODY, NOBODY);
    await replacePrivateFile(file, { key_id: "new" });
    const { uid, gid } = await stat(file);
    expect([uid, gid]).toEqual([NOBODY, NOBODY]);
  });

  asRoot("stays as it is where a user writes it who cannot give it its owner", async () => {
    await writeFile(file, "{}", { mode: 0o644 });
    await chown(folder.path, NOBODY, NOBODY);
    // It loads what it needs first: the repository may be root's alone.
    const program = `const { replacePrivateFile } = await import(${JSON.stringify(SOURCE)});
      process.setegid(${NOBODY}); process.seteuid(${NOBODY});
      await replacePrivateFile(${JSON.stringify(file)}, {}).catch(({ message }) => console.log(message));`;
    const { stdout } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stdout).toMatch(/bob\.json belongs to user 0 and group 0, .* it was not changed\.\n$/);
    expect([await readFile(file, "utf8"), await readdir(folder.path)]).toEqual(["{}", ["bob.json"]]);
  });
});
