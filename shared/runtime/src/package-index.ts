import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { PackageIndex } from "relay-protocol/contract/packages.ts";
import { SettingsError } from "./settings.ts";

const EMPTY: PackageIndex = { sources: "", packages: [] };

/**
 * The index of the folder of RELAY_PACKAGES_DIR; empty without the setting.
 * @throws SettingsError when the index cannot be read: a relay that should hand out packages must not start without
 * them.
 */
export function readPackageIndex(folder: string | undefined): PackageIndex {
  if (folder === undefined) return EMPTY;
  try {
    const path = join(folder, "index.json");
    // A pipe would be waited for.
    if (!statSync(path).isFile()) throw new Error("no regular file");
    return PackageIndex.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    throw new SettingsError(["RELAY_PACKAGES_DIR has no valid index.json; make the packages with npm run packages"]);
  }
}
