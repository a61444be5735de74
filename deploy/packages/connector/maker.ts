import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Maker } from "../release.ts";
import { browserModule } from "./browser.ts";
import { npmPackage } from "./npm.ts";

const MANIFEST = fileURLToPath(new URL("../../../connector/package.json", import.meta.url));

/** The connector: an npm package for Node, one module for browsers, under one version. */
export const connector: Maker = {
  sources: [
    "connector/src",
    "connector/templates",
    "connector/package.json",
    "connector/README.md",
    "connector/CLI.md",
    "tsconfig.base.json",
  ],
  make: async () => {
    const manifest = JSON.parse(await readFile(MANIFEST, "utf8"));
    return { number: manifest.version, drafts: await Promise.all([npmPackage(manifest), browserModule()]) };
  },
};
