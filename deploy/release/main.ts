import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makePackages } from "../packages/make.ts";
import { buildImages, pinnedBaseImages } from "./images.ts";
import { billOfMaterials, CommandError, checksumsOf, NotAReleaseError, ROOT, releaseId } from "./tree.ts";

/**
 * `npm run release [-- --to <folder>]`: makes all that a release consists of, in a folder that is empty or holds a release, and publishes nothing:
 * images, the connectors' packages, a bill of materials, what it was made of, checksums. Exit code 1 where the tree is no release, the folder has something
 * else, a registry gives no digest, or a build fails. Source: docs/upgrading.md#releases.
 */

const { values } = parseArgs({ options: { to: { type: "string" } } });

try {
  const id = await releaseId();
  say(`release ${id.version}, commit ${id.commit}`);
  const folder = resolve(values.to ?? join(ROOT, ".local/release", id.version));
  await refuseOthers(folder);
  const bases = await pinnedBaseImages();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const { packages } = await makePackages(join(folder, "packages"));
  await writeFile(join(folder, "sbom.cdx.json"), `${await billOfMaterials()}\n`);
  const images = await buildImages(folder, id, bases);
  const made = { ...id, base_images: bases, images, packages: packages.map(({ file }) => file) };
  await writeFile(join(folder, "release.json"), `${JSON.stringify(made, null, 2)}\n`);
  await writeFile(join(folder, "SHA256SUMS"), await checksumsOf(folder));
  for (const { name, platforms } of images) say(`${name} for ${platforms}`);
  say(`Made in ${folder}; nothing is published.`);
} catch (error) {
  if (!(error instanceof CommandError || error instanceof NotAReleaseError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

/** Whatever is in the folder is deleted, so it may be a release alone. */
async function refuseOthers(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw new NotAReleaseError(`${folder} is no folder that can be read: name another one.`);
  });
  if (names.length > 0 && !names.includes("release.json")) {
    throw new NotAReleaseError(`${folder} is not empty, and holds no release: name another folder.`);
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
