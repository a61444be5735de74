import manifest from "../package.json" with { type: "json" };
import type { Warning } from "./types.ts";

/** Of this connector. Packages that a relay hands out have a digest in it, as in `1.0.0-b3f2a…`; the sources have none. */
export const VERSION: string = manifest.version;

/**
 * The warning for a connector that is older than the one that the relay hands out; undefined for any other.
 * @param offered what `hello` says.
 */
export function outdatedWarning(offered: string | undefined, own: string = VERSION): Warning | undefined {
  if (!isOutdated(offered, own)) return undefined;
  return {
    code: "outdated_connector",
    message: `The relay hands out connector ${offered}; this is ${own}.`,
    hint: "GET /connectors at the relay has the path of its packages.",
  };
}

/**
 * A higher number is newer, and so is another build of the same number: a relay's own packages are those that fit it.
 * Sources are no build, and are not compared with one.
 */
function isOutdated(offered: string | undefined, own: string): boolean {
  const [theirs, ours] = [partsOf(offered), partsOf(own)];
  if (theirs === undefined || ours === undefined) return false;
  const differences = theirs.numbers.map((number, index) => number - (ours.numbers[index] ?? 0));
  const first = differences.find((difference) => difference !== 0);
  if (first !== undefined) return first > 0;
  return ours.build !== undefined && theirs.build !== undefined && ours.build !== theirs.build;
}

/** Source: Semantic Versioning 2.0.0. */
function partsOf(version = ""): { numbers: number[]; build: string | undefined } | undefined {
  const found = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]{1,64}))?$/.exec(version);
  return found === null ? undefined : { numbers: found.slice(1, 4).map(Number), build: found[4] };
}
