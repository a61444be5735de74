import { execFile } from "node:child_process";
import { cp, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { connectorIn, madePackages, packagesIn } from "../support/packages.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SOURCES = fileURLToPath(new URL("../../connector-python", import.meta.url));

/** Lists modules and metadata of a wheel: each file with its digest in RECORD, checked; and what its metadata requires. */
const INSPECT = `
import base64, email, hashlib, json, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
assert wheel.testzip() is None
names = wheel.namelist()
folder = next(name for name in names if name.endswith("/RECORD")).rpartition("/")[0]
record = dict(line.rsplit(",", 2)[:2] for line in wheel.read(folder + "/RECORD").decode().splitlines())
assert set(record) == set(names), "RECORD lists other files"
for name in set(names) - {folder + "/RECORD"}:
    digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).decode().rstrip("=")
    assert record[name] == "sha256=" + digest, name
metadata = email.message_from_bytes(wheel.read(folder + "/METADATA"))
tags = email.message_from_bytes(wheel.read(folder + "/WHEEL"))
print(json.dumps({
    "modules": {name: record[name] for name in sorted(names) if not name.startswith(folder)},
    "requires": sorted(text.replace(" ", "").replace("(", "").replace(")", "") for text in metadata.get_all("Requires-Dist")),
    "python": metadata["Requires-Python"], "name": metadata["Name"].replace("-", "_"), "summary": metadata["Summary"],
    "tag": tags["Tag"], "pure": tags["Root-Is-Purelib"],
}))
`;

async function python(...args: readonly string[]): Promise<string> {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  return (await promisify(execFile)(pythonProgram(), args, { env })).stdout;
}

describe("The wheel that the relay hands out", () => {
  let wheel: string;
  let version: string;
  beforeAll(async () => {
    const folder = await madePackages();
    const { packages } = await packagesIn(folder);
    const record = packages.find(({ name }) => name === "agent_relay_connector");
    wheel = join(folder, record?.file as string);
    version = record?.version as string;
  }, 60_000);

  test("is the one that Python's own tools build, but for its version", async () => {
    await using copy = await temporaryFolder();
    const project = join(copy.path, "project");
    await mkdir(project);
    for (const part of ["src", "pyproject.toml", "README.md"]) {
      await cp(join(SOURCES, part), join(project, part), { recursive: true });
    }
    await python("-m", "build", "--no-isolation", "--outdir", copy.path, project);
    const built = await readdir(copy.path);
    built.sort();
    expect(built).toEqual([
      expect.stringMatching(/py3-none-any\.whl$/),
      expect.stringMatching(/\.tar\.gz$/),
      "project",
    ]);
    const theirs = JSON.parse(await python("-c", INSPECT, join(copy.path, built[0] as string)));
    expect(Object.keys(theirs.modules)).toContain("agent_relay_connector/py.typed");
    const version = { "agent_relay_connector/version.py": expect.any(String) };
    const ours = { ...theirs, modules: { ...theirs.modules, ...version } };
    expect(JSON.parse(await python("-c", INSPECT, wheel))).toEqual(ours);
  }, 60_000);

  test("knows its version, which is that of the package for npm, so that hello says when it is outdated", async () => {
    const code = `
import sys
sys.path.insert(0, sys.argv[1])
from agent_relay_connector.version import VERSION, is_outdated
print(VERSION, *(is_outdated(offered) for offered in (VERSION, VERSION.split("-")[0] + "-b0123456789ab", "0.0.9")))`;
    expect(await python("-c", code, wheel)).toBe(`${version} False True False\n`);
    expect(version).toBe((await connectorIn(await madePackages())).version);
  });

  test("has a version of its content that Python takes as one", async () => {
    const code = `
import sys
sys.path.insert(0, sys.argv[1])
import agent_relay_connector, importlib.metadata
print(importlib.metadata.version("agent_relay_connector"), agent_relay_connector.__file__.startswith(sys.argv[1]))`;
    expect(await python("-c", code, wheel)).toBe(`${version.replace("-", "+")} True\n`);
    expect(version).toMatch(/^\d+\.\d+\.\d+-b[0-9a-f]{12}$/);
  });
});
