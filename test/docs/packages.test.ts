import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";

const ROOT = new URL("../../", import.meta.url);
const DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "connector/README.md"];

/** What a line that fetches a package may name: an address, a file, or what npm start has installed here. */
const OWN = /^(?:https?:|\.|<|-)/;

const READMES = ["connector/README.md", "connector-python/README.md"];

test.each(READMES)("%s, the only document of its package, links to no file and asks for no clone", async (document) => {
  const text = await readFile(new URL(document, ROOT), "utf8");
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target as string);
  expect(links.filter((target) => !/^(?:#|https:)/.test(target))).toEqual([]);
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
