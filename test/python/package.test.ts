import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { pythonProgram } from "../../deploy/local/python-program.mjs";

const FOLDER = fileURLToPath(new URL("../../connector-python", import.meta.url));

/** Runs a module of Python in the package's folder; resolves with both streams. */
function run(...args: readonly string[]): { status: number | null; printed: string } {
  const env = { ...process.env, PYTHONPATH: "src", PYTHONDONTWRITEBYTECODE: "1" };
  const { status, stdout, stderr } = spawnSync(pythonProgram(), args, { cwd: FOLDER, env, encoding: "utf8" });
  return { status, printed: stdout + stderr };
}

describe("The Python package", () => {
  test("passes its own tests, which leave nothing open", () => {
    const options = [
      "-X",
      "dev",
      "-W",
      "error::ResourceWarning",
      "-W",
      "error::DeprecationWarning:agent_relay_connector",
    ];
    const { status, printed } = run(...options, "-m", "unittest", "discover", "-s", "tests", "-t", ".");
    expect({ status, printed }).toMatchObject({ status: 0, printed: expect.stringMatching(/^Ran [1-9]\d* tests/m) });
  });

  test("has types that hold, strictly", () => {
    const { status, printed } = run("-m", "mypy", "--strict");
    expect({ status, printed }).toMatchObject({ status: 0, printed: expect.stringMatching(/no issues found/) });
  }, 120_000);

  test("depends on websockets and cryptography alone", () => {
    const code = `
import ast, pathlib, sys
names = set()
for path in pathlib.Path("src").rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import): names |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.level == 0: names.add(node.module.split(".")[0])
print(*sorted(names - sys.stdlib_module_names))`;
    expect(run("-c", code).printed).toBe("cryptography websockets\n");
  });
});
