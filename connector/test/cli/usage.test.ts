import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { CONTROL_MEMBERS } from "../../src/cli/control/request.ts";
import { nearest } from "../../src/cli/nearest.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { Shell } from "./shell.ts";

const shell = shared(new Shell());

describe("relay", () => {
  test("explains: every command has help, with exit code 0; an invalid command line ends with 2", async () => {
    const { code, stdout } = await shell.run(["--help"]);
    const commands = [...stdout.matchAll(/^ {2}relay (\w+) {2,}[A-Z]/gm)].map(([, name]) => name as string);
    expect(code).toBe(0);
    expect(commands).toEqual([
      ...["keygen", "init", "check", "listen", "send", "ask", "request", "approve", "reject"],
      ...["issuer", "issue", "credential", "inspect", "receipt", "verify", "status", "mcp", "completion"],
    ]);
    for (const name of commands) {
      const help = await shell.run([name, "--help"]);
      expect([help.code, help.stdout, help.stderr]).toEqual([
        0,
        expect.stringMatching(new RegExp(`^relay ${name}`)),
        "",
      ]);
      // It stands in a package: who has no clone of the repository can run none of its commands.
      expect(stdout + help.stdout).not.toMatch(/\bnpm |\.local\b/);
    }
    expect(await shell.run(["fly"])).toMatchObject({ code: 2, stdout: "" });
    for (const words of [
      ["fly"],
      ["send", "--fly"],
      ["listen", "word"],
      ["listen", "--reply"],
      ["request", "agent://bob"],
    ]) {
      const { code, stdout, stderr } = await shell.run([...words, "--json"]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(jsonLines(stderr)).toMatchObject([{ event: "error", code: "usage" }]);
    }
  });

  test("has the exit codes that its README lists", async () => {
    const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
    const table = /<!-- exit codes[\s\S]*?<!-- \/exit codes -->/.exec(readme)?.[0] ?? "";
    const { stdout } = await shell.run(["--help"]);
    const listed = [...table.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, words]) => [code, words]);
    expect(listed.length).toBeGreaterThan(0);
    expect([...stdout.matchAll(/^ {2}(\d+) +(.*)$/gm)].map(([, code, words]) => [code, words])).toEqual(listed);
  });
});

test("A word that a command does not take is named, unless it may be a secret", async () => {
  const messageOf = async (...words: string[]) => jsonLines((await shell.run([...words, "--json"])).stderr)[0].message;
  expect(await messageOf("keygen", "agnet")).toContain("keygen takes options only. It does not take the word agnet.");
  expect(await messageOf("init", "one", "two")).toContain("the word two.");
  expect(await hintOf(["keygen", "agent://carol"])).toContain("--agent agent://carol");
  expect(await messageOf("keygen", "k".repeat(32))).not.toContain("kkk");
});

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
