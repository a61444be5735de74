import { readdir, readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { expect, test } from "@jest/globals";

const ROOT = new URL("../../", import.meta.url);
const DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "connector/README.md", "connector/CLI.md"];

/** What a line that fetches a package may name: an address, a file, or what npm start has installed here. */
const OWN = /^(?:https?:|\.|<|-)/;

const IN_PACKAGES = ["connector/README.md", "connector/CLI.md", "connector-python/README.md"];

test.each(IN_PACKAGES)("%s links to no file that its package lacks, and asks for no clone", async (document) => {
  const text = await readFile(new URL(document, ROOT), "utf8");
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target as string);
  const beside = IN_PACKAGES.filter((other) => dirname(other) === dirname(document)).map((other) => basename(other));
  const found = (target: string) => /^(?:#|https:)/.test(target) || beside.includes(target.replace(/#.*/, ""));
  expect(links.filter((target) => !found(target))).toEqual([]);
  expect(text).not.toMatch(/npm (?:run|start)/);
});

test("No document leads to a package of a registry, where somebody else may own the name", async () => {
  const docs = (await readdir(new URL("docs/", ROOT))).map((name) => `docs/${name}`);
  for (const document of [...DOCUMENTS, ...docs]) {
    const text = await readFile(new URL(document, ROOT), "utf8");
    const fetched = [...text.matchAll(/(?:--package=|npm (?:install|i|add) |npx --yes )([^\s"`]+)/g)].map(
      ([, name]) => name,
    );
    expect({ document, strangers: fetched.filter((name) => !OWN.test(name as string)) }).toEqual({
      document,
      strangers: [],
    });
  }
});
