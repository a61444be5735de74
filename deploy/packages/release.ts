import type { PackageRecord } from "relay-protocol/contract/packages.ts";

/** Stands in a line of `usage` for the digest of the package, in hex. */
export const SHA512 = "{sha512}";

/** A package before its version is known: the version is a digest of what it holds. */
export interface Draft
  extends Pick<PackageRecord, "name" | "media" | "purpose" | "needs" | "usage" | "first_program" | "manual"> {
  readonly file: (version: string) => string;
  /** The same bytes each time for the same version, on every machine. */
  readonly contents: (version: string) => Buffer;
}

/** Packages that are made of the same sources and carry one version. */
export interface Release {
  /** Of package.json: what people count in. */
  readonly number: string;
  readonly drafts: readonly Draft[];
}

export interface Maker {
  /** Files and folders that the release is made of, from the repository's root on. */
  readonly sources: readonly string[];
  readonly make: () => Promise<Release>;
}
