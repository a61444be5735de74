import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { CONTROL_MEMBERS } from "../../src/cli/control/request.ts";
import { nearest } from "../../src/cli/nearest.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { Shell } from "./shell.ts";

const shell = shared(new Shell());

async function hintOf(args: string[]): Promise<string> {
  const { code, stderr } = await shell.run([...args, "--json"]);
  expect(code).toBe(2);
  return jsonLines(stderr)[0].hint;
}

describe("A slip of the command line", () => {
  test("is answered with the command, or the option, that was probably meant", async () => {
    expect(await hintOf(["lisen"])).toContain("relay listen");
    expect(await hintOf(["sned"])).toContain("relay send");
    expect(await hintOf(["stauts"])).toContain("relay status");
    expect(await hintOf(["send", "--wait-onlin", "3"])).toContain("--wait-online");
  });

  test("is never guessed at from afar, nor repeated: it may be a secret", async () => {
    const secret = "hunter2hunter2";
    expect(nearest(secret, ["listen", "send"])).toBeUndefined();
    expect(await hintOf([secret])).not.toContain(secret);
    expect(nearest("xy", ["key", "url"])).toBeUndefined();
  });
});

test("relay listen --help names every member that a control line may have", async () => {
  const { stdout } = await shell.run(["listen", "--help"]);
  for (const member of CONTROL_MEMBERS) expect(stdout).toContain(`"${member}"`);
});

describe("relay completion", () => {
  async function completed(...words: string[]): Promise<string[]> {
    const { stdout: script } = await shell.run(["completion", "bash"]);
    const asks = `${script}\nCOMP_WORDS=(relay ${words.join(" ")}) COMP_CWORD=${words.length}; _relay; echo "\${COMPREPLY[@]}"`;
    const { stdout } = await promisify(execFile)("bash", ["-c", asks], { cwd: shell.folder });
    return stdout.trim().split(" ");
  }

  test("makes bash complete commands, their options, and files", async () => {
    expect(await completed("se")).toEqual(["send"]);
    expect(await completed("listen", "--ta")).toEqual(["--take-over"]);
    expect(await completed("send", "--w")).toEqual(["--wait-online"]);
    await shell.write("bob.json", {});
    expect(await completed("send", "--key", "bo")).toEqual(["bob.json"]);
  });

  test.each(["zsh", "fish"])("knows every command and the options of %s, too", async (name) => {
    const { stdout } = await shell.run(["completion", name]);
    for (const word of ["keygen", "completion", "take-over"]) expect(stdout).toContain(word);
  });

  test("refuses another shell", async () => {
    expect((await shell.run(["completion", "csh"])).code).toBe(2);
  });
});
