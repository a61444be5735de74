import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { filesIn } from "../../deploy/packages/files.ts";
import type { Draft } from "../../deploy/packages/release.ts";
import { digestOf } from "../../deploy/packages/sources.ts";
import { tarball } from "../../deploy/packages/tarball.ts";
import { versionOf } from "../../deploy/packages/version.ts";
import { connectorIn, makePackagesIn, packagesIn } from "../support/packages.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let first: Awaited<ReturnType<typeof temporaryFolder>>;
let made: string;
/** What is in the npm package of the first. */
let unpacked: string;

beforeAll(async () => {
  first = await temporaryFolder();
  made = join(first.path, "made");
  await makePackagesIn(made);
  unpacked = join(first.path, "unpacked");
  await mkdir(unpacked);
  await promisify(execFile)("tar", ["-xzf", join(made, (await connectorIn(made)).file)], { cwd: unpacked });
}, 60_000);
afterAll(async () => await first[Symbol.asyncDispose]());

const textOf = (path: string) => readFile(join(unpacked, "package", path), "utf8");

describe("The same sources", () => {
  test("give the same bytes and versions, at another time and in another folder", async () => {
    await using second = await temporaryFolder();
    await makePackagesIn(second.path);
    expect(await readdir(second.path)).toEqual(await readdir(made));
    for (const file of await readdir(made)) {
      const [one, other] = await Promise.all([readFile(join(made, file)), readFile(join(second.path, file))]);
      expect({ file, isSame: one.equals(other) }).toEqual({ file, isSame: true });
    }
  }, 60_000);

  test("are not made again", async () => {
    const index = join(made, "index.json");
    const before = (await stat(index)).mtimeMs;
    await makePackagesIn(made);
    expect((await stat(index)).mtimeMs).toBe(before);
  });
});

describe("A version", () => {
  const draft = (content: string): Draft => ({
    name: "one",
    media: "text/plain",
    purpose: "",
    needs: "",
    usage: [],
    manual: "",
    file: (version) => `one-${version}.txt`,
    contents: (version) => Buffer.from(content + version),
  });

  test("changes with the content, whatever the number", () => {
    const number = "1.2.3";
    const version = versionOf({ number, drafts: [draft("a")] });
    expect(version).toMatch(/^1\.2\.3-b[0-9a-f]{12}$/);
    expect(versionOf({ number, drafts: [draft("a")] })).toBe(version);
    expect(versionOf({ number, drafts: [draft("b")] })).not.toBe(version);
    expect(versionOf({ number, drafts: [draft("a"), draft("a")] })).not.toBe(version);
  });

  test("is made anew when a source changes its name or its content, and not for its time or how its lines end", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "src/a.ts");
    await mkdir(join(folder.path, "src"));
    await writeFile(file, "1\n");
    const digest = await digestOf(folder.path, ["src"]);
    await utimes(file, 1, 1);
    expect(await digestOf(folder.path, ["src"])).toBe(digest);
    await writeFile(file, "1\r\n");
    expect(await digestOf(folder.path, ["src"])).toBe(digest);
    await rename(file, join(folder.path, "src/b.ts"));
    expect(await digestOf(folder.path, ["src"])).not.toBe(digest);
    await rename(join(folder.path, "src/b.ts"), file);
    await writeFile(file, "2");
    expect(await digestOf(folder.path, ["src"])).not.toBe(digest);
  });
});

test("What Python compiled beside its modules is no file of a package, however deep", async () => {
  await using folder = await temporaryFolder();
  const files = ["main.py", "parts/part.py"].map((file) => join(folder.path, file));
  const compiled = ["__pycache__/main.pyc", "parts/__pycache__/old/part.pyc"].map((file) => join(folder.path, file));
  for (const file of [...compiled, ...files]) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, "");
  }
  expect(await filesIn(folder.path)).toEqual(files);
});

describe("A tarball", () => {
  test("does not depend on the order in which its files were given", () => {
    const files = ["b", "a", "c/d"].map((path) => ({ path, text: path.repeat(40_000) }));
    expect(tarball(files).equals(tarball(files.toReversed()))).toBe(true);
  });

  test("is gzip that other programs read", () => {
    const text = "x".repeat(70_000);
    expect(gunzipSync(tarball([{ path: "a", text }])).includes(text)).toBe(true);
  });
});

describe("The npm package", () => {
  test("depends on no other package, and runs no script when it is installed", async () => {
    const manifest = JSON.parse(await textOf("package.json"));
    expect(Object.keys(manifest).sort()).toEqual(["bin", "description", "exports", "name", "type", "version"].sort());
    expect(manifest.version).toBe((await connectorIn(made)).version);
  });

  test("makes npm print no warning about Node: npx may run it on another than npm's own, and its entries check that one", async () => {
    expect(JSON.parse(await textOf("package.json"))).not.toHaveProperty("engines");
  });

  test("imports nothing but its own files and Node's modules", async () => {
    const files = await readdir(join(unpacked, "package/lib"));
    const texts = await Promise.all(files.map((file) => textOf(`lib/${file}`)));
    const imported = texts.flatMap((text) =>
      [...text.matchAll(/(?:from|import)\s*\(?"([@\w./:-]+)"/g)].map(([, name]) => name),
    );
    expect(imported.length).toBeGreaterThan(20);
    for (const name of imported) expect(name).toMatch(/^(?:\.\/[\w-]+\.js|node:[\w/]+|[a-z_]+)$/);
  });

  test("has types of its own alone: nothing of MCP or zod, and nothing private", async () => {
    const found = await readdir(join(unpacked, "package/types"), { recursive: true });
    const files = found.filter((file) => file.endsWith(".d.ts")).sort();
    const flat = ["connector", "errors", "field-errors", "index", "options", "types", "verify"];
    const expected = [...flat, "cli/library", "credentials/contract", "receipts/contract"].map(
      (name) => `${name}.d.ts`,
    );
    expect(files).toEqual(expected.sort());
    for (const file of files) expect(await textOf(`types/${file}`)).not.toMatch(/modelcontextprotocol|zod|\.ts"/);
  });

  test("passes on the licences of what is bundled", async () => {
    const text = await textOf("THIRD-PARTY.txt");
    for (const name of ["@modelcontextprotocol/sdk", "zod", "ajv", "canonicalize"]) expect(text).toContain(`${name} `);
    expect(text).toContain("Apache License");
  });

  test("holds no path of the machine that made it", async () => {
    const content = gunzipSync(await readFile(join(made, (await connectorIn(made)).file))).toString();
    expect(content).not.toContain(process.cwd());
  });
});

test("The modules of a package have lines that a terminal can show", async () => {
  const { packages } = await packagesIn(made);
  const { file } = packages.find(({ name }) => name === "connector") as { file: string };
  const modules = (await filesIn(join(unpacked, "package/lib"))).filter((path) => path.endsWith(".js"));
  for (const path of [...modules, join(made, file)]) {
    const longest = (await readFile(path, "utf8")).split("\n").reduce((most, line) => Math.max(most, line.length), 0);
    // A string stays whole.
    expect([path, longest <= 2000]).toEqual([path, true]);
  }
});
