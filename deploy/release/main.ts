import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makePackages } from "../packages/make.ts";
import { pinnedBaseImages } from "./base-images.ts";
import { billOfMaterials } from "./bill-of-materials.ts";
import { checksumsOf } from "./checksums.ts";
import { CommandError, ROOT } from "./command.ts";
import { buildImages } from "./images.ts";
import { NotAReleaseError, releaseId } from "./version.ts";

/**
 * `npm run release [-- --to <folder>]`: makes all that a release consists of, in a folder that is emptied first, and publishes nothing:
 * images, the connectors' packages, a bill of materials, what it was made of, checksums. Exit code 1 where the tree is no release,
 * a registry gives no digest, or a build fails. Source: docs/upgrading.md#releases.
 */

const { values } = parseArgs({ options: { to: { type: "string" } } });

try {
  const id = await releaseId();
  say(`release ${id.version}, commit ${id.commit}`);
  const bases = await pinnedBaseImages();
  const folder = values.to ?? join(ROOT, ".local/release", id.version);
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

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
