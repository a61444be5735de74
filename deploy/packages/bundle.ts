import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BuildOptions, Metafile, Plugin } from "esbuild";
import { textOf } from "./files.ts";
import { PLACEHOLDER } from "./version.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Packages that are no ES modules ask for Node's modules by `require`. */
export const REQUIRE =
  'import{createRequire as relayRequire}from"node:module";const require=relayRequire(import.meta.url);';

/** What differs from bundle to bundle. */
export type BundleOptions = Pick<
  BuildOptions,
  "platform" | "conditions" | "splitting" | "alias" | "banner" | "external" | "plugins"
>;

export interface Bundle {
  /** Name and text of each file, without folder. */
  readonly files: ReadonlyMap<string, string>;
  /** Folders of the packages of others that are part of it, from the repository's root on. */
  readonly bundled: readonly string[];
}

/**
 * Bundles TypeScript with all that it imports as ES modules, which Node 20 can still parse, so that it can be told that it
 * is too old. esbuild is loaded here and not before, for the start of a relay whose packages are made.
 * @param entries file name without extension → module, from the repository's root on.
 * @param manifest the package.json whose version the bundle tells as its own.
 */
export async function bundle(
  entries: Readonly<Record<string, string>>,
  manifest: string,
  options: BundleOptions,
): Promise<Bundle> {
  const { build } = await import("esbuild");
  const { outputFiles, metafile } = await build({
    ...options,
    absWorkingDir: ROOT,
    entryPoints: { ...entries },
    outdir: "lib",
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "node20",
    minify: true,
    // Node prints the line that threw, and the name of what was thrown: neither may be a page, or one letter.
    keepNames: true,
    lineLimit: 160,
    legalComments: "none",
    plugins: [unversioned(join(ROOT, manifest)), ENGLISH_ALONE, ...(options.plugins ?? [])],
  });
  const files = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
  return { files, bundled: packagesOf(metafile) };
}

/** Ends the process of esbuild, which would otherwise stay for more to build. */
export async function stopBundling(): Promise<void> {
  const { stop } = await import("esbuild");
  await stop();
}

/** zod brings its messages in fifty languages, 267 KB. The relay has its own, or English ones. */
const ENGLISH_ALONE: Plugin = {
  name: "english-alone",
  setup: (build) =>
    build.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
      resolveDir: join(ROOT, "node_modules/zod/v4/locales"),
    })),
};

/** The version is not known before the content is: a placeholder stands for it. */
function unversioned(manifest: string): Plugin {
  return {
    name: "unversioned",
    setup: (build) =>
      build.onLoad({ filter: /package\.json$/ }, ({ path }) =>
        path === manifest ? { contents: JSON.stringify({ version: PLACEHOLDER }), loader: "json" } : undefined,
      ),
  };
}

function packagesOf({ inputs }: Metafile): string[] {
  const folders = Object.keys(inputs).flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []);
  return [...new Set(folders)].sort();
}

/** What the licences of bundled packages ask to be passed on: name, version, licence and its text. */
export async function notices(folders: readonly string[]): Promise<string> {
  const texts = folders.map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(ROOT, folder, "package.json"), "utf8"));
    if (typeof license !== "string") throw new Error(`no licence in ${folder}`);
    return `${name} ${version} (${license})\n\n${(await licenceIn(folder)).trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}

/** LICENSE, or LICENSE.md; a few packages name their licence and have no text of it. */
async function licenceIn(folder: string): Promise<string> {
  const file = (await readdir(join(ROOT, folder))).find((name) =>
    /^LICEN[CS]E(?:[-.]MIT)?(?:\.(?:md|txt))?$/i.test(name),
  );
  return file === undefined ? "The package contains no text of it." : await textOf(join(ROOT, folder, file));
}
