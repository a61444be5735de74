import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Plugin } from "esbuild";
import { packedFrom } from "../files.ts";

/** Folder of the package for what modules read beside themselves; under it the paths are those of the repository. */
const FILES = "files";
const ADDRESS_OF_MODULE = /new URL\("\.\/([\w-]+)\.ts", import\.meta\.url\)|import\.meta\.url/g;

/**
 * Has what modules find beside themselves found in the package: files under `files/`, and threads, which are entries of the
 * bundle, next to the module.
 */
export function inPackage(root: string, threads: readonly string[]): Plugin {
  return {
    name: "in-package",
    setup: (build) =>
      build.onLoad({ filter: /\.(?:ts|mjs)$/ }, async ({ path }) => {
        const own = relative(root, path);
        if (/^\.\.|node_modules/.test(own)) return undefined;
        const text = await readFile(path, "utf8");
        const contents = text.replace(ADDRESS_OF_MODULE, (_, thread?: string) => {
          if (thread === undefined) return `new URL("../${FILES}/${own}", import.meta.url)`;
          if (threads.includes(thread)) return `new URL("./${thread}.js", import.meta.url)`;
          throw new Error(`${own} starts a thread that is no entry of the bundle: ${thread}`);
        });
        return { contents, loader: path.endsWith(".ts") ? "ts" : "js" };
      }),
  };
}

/** All files in these folders but modules in TypeScript, by their paths in the package. */
export async function filesBesideModules(root: string, folders: readonly string[]) {
  const packed = await Promise.all(folders.map((folder) => packedFrom(join(root, folder), root)));
  const beside = packed.flat().filter(({ path }) => !path.endsWith(".ts"));
  return beside.map((file) => ({ ...file, path: `${FILES}/${file.path}` }));
}
