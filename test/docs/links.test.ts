import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { sectionsOf } from "../support/documents.ts";

const REPOSITORY = new URL("../../", import.meta.url);
const documents = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md", "connector/README.md", "connector/CLI.md"],
  ...(await readdir(new URL("docs/", REPOSITORY))).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
];

test.each(documents)("%s links only to files and sections that exist", async (document) => {
  const at = new URL(document, REPOSITORY);
  const text = await readFile(at, "utf8");
  for (const [, path = "", section] of text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)/g)) {
    const target = await readFile(path === "" ? at : new URL(path, at), "utf8");
    if (section !== undefined) expect(sectionsOf(target)).toContain(section);
  }
});
