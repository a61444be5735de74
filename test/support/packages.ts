import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CONNECTOR_PACKAGE, PackageIndex, type PackageRecord } from "relay-protocol/contract/packages.ts";
import { COMPILE_CACHE } from "./pod-process.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Where `npm start` has them: what is made once serves all tests of a run. */
const FOLDER = join(ROOT, ".local/packages");

/** The folder of the packages of the present sources, for RELAY_PACKAGES_DIR. */
export async function madePackages(): Promise<string> {
  await makePackagesIn(FOLDER);
  return FOLDER;
}

/** `npm run packages -- <folder>`, in a process of its own. */
export async function makePackagesIn(folder: string): Promise<PackageIndex> {
  await promisify(execFile)(process.execPath, ["deploy/packages/main.ts", folder], { cwd: ROOT, env: COMPILE_CACHE });
  return await packagesIn(folder);
}

export async function packagesIn(folder: string): Promise<PackageIndex> {
  return PackageIndex.parse(JSON.parse(await readFile(join(folder, "index.json"), "utf8")));
}

/** The npm package of a folder. */
export async function connectorIn(folder: string): Promise<PackageRecord> {
  return await packageIn(folder, CONNECTOR_PACKAGE);
}

/** The package of that name. */
export async function packageIn(folder: string, wanted: string): Promise<PackageRecord> {
  const { packages } = await packagesIn(folder);
  return packages.find(({ name }) => name === wanted) as PackageRecord;
}
