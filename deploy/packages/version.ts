import { createHash } from "node:crypto";
import type { Release } from "./release.ts";

/** Stands for the version in what is built before the version is known. */
export const PLACEHOLDER = "0.0.0-version-of-this-package";
const DIGEST_DIGITS = 12;

/**
 * Version of a release: its number, and a digest of all that it holds as a prerelease part. npm and every cache keep for
 * ever what an address gave them once: the version changes whenever the content does, even where nobody raised the number.
 * The letter in front keeps a digest of digits alone valid. Source: Semantic Versioning 2.0.0.
 */
export function versionOf({ number, drafts }: Release): string {
  const hash = createHash("sha256");
  for (const { file, contents } of drafts) hash.update(`${file(PLACEHOLDER)}\n`).update(contents(PLACEHOLDER));
  return `${number}-b${hash.digest("hex").slice(0, DIGEST_DIGITS)}`;
}

/** Puts the version where the placeholder stands. */
export function stamped(text: string, version: string): string {
  return text.replaceAll(PLACEHOLDER, version);
}
