import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { installedSample } from "../examples/sample-project.ts";
import { codeBlock } from "../support/documents.ts";
import { madePackages, packageIn } from "../support/packages.ts";
import { use } from "../support/use-relay.ts";
import { Machine } from "./npm.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const GUIDE = await readFile(join(REPOSITORY, "docs/testing.md"), "utf8");

const machine = use(new Machine());
/** A project that has the package and the connector installed. */
let project: string;
let installed: string;
beforeAll(async () => {
  project = await installedSample(machine);
  installed = join(project, "node_modules/agent-relay-testing");
}, 120_000);

describe("The package for tests", () => {
  test("depends on no other package, runs no script when it is installed, and has no machine code", async () => {
    const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
    expect(manifest).not.toHaveProperty("dependencies");
    expect(manifest).not.toHaveProperty("scripts");
    expect(manifest.peerDependenciesMeta).toEqual({ testcontainers: { optional: true } });
    const files = await readdir(installed, { recursive: true });
    expect(files.filter((file) => /\.(?:node|ts)$/.test(file) && !file.endsWith(".d.ts"))).toEqual([]);
  });

  test("makes npm print no warning about Node: npx may run it on another than npm's own, and its entries check that one", async () => {
    const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
    expect(manifest).not.toHaveProperty("engines");
  });

  test("has types of its own alone: nothing of the relay's insides", async () => {
    const files = await readdir(join(installed, "types"));
    const texts = await Promise.all(files.map((file) => readFile(join(installed, "types", file), "utf8")));
    const imported = texts.flatMap((text) => [...text.matchAll(/from "([^".][^"]*)"/g)].map(([, name]) => name));
    expect(new Set(imported)).toEqual(new Set(["testcontainers"]));
  });

  test("runs the examples of its guide as they are printed", async () => {
    await writeFile(join(project, "test/guide.test.ts"), codeBlock(GUIDE, "ts node"));
    await writeFile(join(project, "test/container-guide.ts"), codeBlock(GUIDE, "ts container"));
    const { stdout } = await machine.shell("node node_modules/typescript/bin/tsc", project);
    expect(stdout).toBe("");
    expect(await machine.shell("node --test test/guide.test.ts", project)).toMatchObject({ code: 0 });
  });

  test("says which Node it needs", async () => {
    const pretend = pathToFileURL(join(REPOSITORY, "test/packages/old-node.mjs")).href;
    const bin = join(project, "node_modules/.bin/with-relay");
    const { code, stderr } = await machine.run(process.execPath, ["--import", pretend, bin], project);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^with-relay: .*Node 24 or later.*\n$/)]);
  });
});

/** That of a virtual environment. */
const PYTHON = `#!/bin/sh
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${REPOSITORY}/connector-python/src
exec ${pythonProgram()} "$@"
`;

/** Stands in for pytest, which nothing else here needs: runs what that would find in the folder. */
const PYTEST = `import glob, importlib

for file in sorted(glob.glob("test_*.py")):
    tests = vars(importlib.import_module(file.removesuffix(".py")))
    for name in [name for name in tests if name.startswith("test_")]:
        tests[name]()
        print(name, "passed")
`;

describe("with-relay", () => {
  const withRelay = (line: string) => machine.shell(`node_modules/.bin/with-relay ${line}`, project);

  test("runs the Python test of the guide beside a relay, by the line of the guide", async () => {
    const python = join(project, ".venv/bin/python");
    await mkdir(dirname(python), { recursive: true });
    await writeFile(python, PYTHON, { mode: 0o755 });
    await writeFile(join(project, "pytest.py"), PYTEST);
    await writeFile(join(project, "test_bob.py"), codeBlock(GUIDE, "python test"));
    const packages = await madePackages();
    const { file } = await packageIn(packages, "agent-relay-testing");
    const line = codeBlock(GUIDE, "sh with-relay").replace(/https:\S+\.tgz/, join(packages, file));
    expect(await machine.shell(line, project)).toMatchObject({ code: 0, stdout: "test_bob_answers passed\n" });
  }, 60_000);

  test("names the relay, the folder of the key files and the API key, and the command relay takes them", async () => {
    const check = 'node_modules/.bin/relay check --key "$RELAY_KEYS/carol.json" && test -n "$RELAY_API_KEY"';
    const { code, stdout } = await withRelay(`carol -- sh -c '${check}'`);
    expect([code, stdout]).toEqual([0, expect.stringContaining("agent://carol")]);
  });

  test("ends as its command ends, and leaves nothing behind", async () => {
    const { code, stdout } = await withRelay(`-- sh -c 'ls "$RELAY_KEYS"; dirname "$RELAY_KEYS"; exit 7'`);
    const [alice, bob, folder] = stdout.split("\n");
    expect([code, alice, bob]).toEqual([7, "alice.json", "bob.json"]);
    await expect(readdir(folder as string)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await withRelay("-- sh -c 'kill -TERM $$'")).toMatchObject({ code: 143 });
    expect(await withRelay("-- no-such-command")).toMatchObject({ code: 1, stderr: expect.stringContaining("ENOENT") });
  });

  test("says how it is used where no command is given", async () => {
    for (const line of ["", "alice bob", "alice --"]) {
      const { code, stderr } = await withRelay(line);
      expect([code, stderr]).toEqual([2, expect.stringContaining("RELAY_KEYS")]);
    }
  });
});
