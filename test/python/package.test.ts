import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { type Ended, runProgram } from "../support/pod-process.ts";

const FOLDER = fileURLToPath(new URL("../../connector-python", import.meta.url));
const STRICT = ["-X", "dev", "-W", "error::ResourceWarning", "-W", "error::DeprecationWarning:agent_relay_connector"];
const IMPORTED = `
import ast, pathlib, sys
names = set()
for path in pathlib.Path("src").rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import): names |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.level == 0: names.add(node.module.split(".")[0])
print(*sorted(names - sys.stdlib_module_names))`;

/** Runs Python in the package's folder. */
function run(...args: readonly string[]): Promise<Ended> {
  const env = { ...process.env, PYTHONPATH: "src", PYTHONDONTWRITEBYTECODE: "1" };
  return runProgram(pythonProgram(), args, { cwd: FOLDER, env });
}

describe("The Python package", () => {
  test("passes its own tests, which leave nothing open", async () => {
    const ended = await run(...STRICT, "-m", "unittest", "discover", "-s", "tests", "-t", ".");
    // The whole report, where a test failed.
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringMatching(/^Ran [1-9]\d* tests[\s\S]*^OK$/m)]);
  }, 120_000);

  test("has types that hold, strictly", async () => {
    const ended = await run("-m", "mypy", "--strict");
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/no issues found/) });
  }, 120_000);

  test("depends on websockets and cryptography alone", async () => {
    expect(await run("-c", IMPORTED)).toEqual({ code: 0, stdout: "cryptography websockets\n", stderr: "" });
  });
});
