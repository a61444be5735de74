import { createHash } from "node:crypto";
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PackageIndex, type PackageRecord } from "relay-protocol/contract/packages.ts";
import { withLock } from "../local/lock-file.mjs";
import { replaceFile } from "../local/replace-file.ts";
import { stopBundling } from "./bundle.ts";
import { connectors } from "./connectors.ts";
import { type Draft, type Maker, SHA512 } from "./release.ts";
import { digestOf } from "./sources.ts";
import { testing } from "./testing/maker.ts";
import { versionOf } from "./version.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Every release that the relay hands out. */
const MAKERS: readonly Maker[] = [connectors, testing];
/** What every package depends on besides its own sources: how packages are made, and the exact tools and libraries. */
const COMMON_SOURCES = ["deploy/packages", "shared/protocol/src/contract/packages.ts", "package-lock.json"];
const PATIENCE_MS = 60_000;
/** By the services, whoever runs them, as the umask allows. */
const READABLE = 0o666;

/**
 * Makes the packages that the relay hands out, unless the folder already has those of the present sources. The index is
 * written last: whoever reads it finds the files that it names.
 */
export async function makePackages(folder: string): Promise<PackageIndex> {
  const sources = await digestOf(ROOT, [...COMMON_SOURCES, ...MAKERS.flatMap((maker) => maker.sources)]);
  const found = await existing(folder);
  if (found?.sources === sources && (await isWhole(folder, found))) return found;
  await mkdir(folder, { recursive: true });
  try {
    return await withLock(join(folder, "packages.lock"), PATIENCE_MS, () => make(folder, sources));
  } finally {
    await stopBundling();
  }
}

async function make(folder: string, sources: string): Promise<PackageIndex> {
  const former = await existing(folder);
  const releases = await Promise.all(MAKERS.map((maker) => maker.make()));
  const packages: PackageRecord[] = [];
  for (const release of releases) {
    const version = versionOf(release);
    for (const draft of release.drafts) packages.push(await write(folder, draft, version));
  }
  const index = { sources, packages };
  await replaceFile(join(folder, "index.json"), `${JSON.stringify(index, null, 2)}\n`, READABLE);
  await forget(folder, former, index);
  return index;
}

async function write(folder: string, draft: Draft, version: string): Promise<PackageRecord> {
  const { name, media, purpose, needs, usage, first_program, manual } = draft;
  const file = draft.file(version);
  const contents = draft.contents(version);
  await replaceFile(join(folder, file), contents, READABLE);
  const digest = createHash("sha512").update(contents).digest();
  const integrity = `sha512-${digest.toString("base64")}`;
  const checked = usage.map(({ for: what, line }) => ({
    for: what,
    line: line.replace(SHA512, digest.toString("hex")),
  }));
  const record = { name, version, file, media, bytes: contents.length, integrity, purpose, needs, usage: checked };
  return { ...record, ...(first_program !== undefined && { first_program }), manual };
}

/** Removes what the former index named and this one does not; nothing else in the folder is this program's. */
async function forget(folder: string, former: PackageIndex | undefined, { packages }: PackageIndex): Promise<void> {
  const kept = new Set(packages.map(({ file }) => file));
  const gone = (former?.packages ?? []).filter(({ file }) => !kept.has(file));
  for (const { file } of gone) await rm(join(folder, file), { force: true });
}

/** Undefined when there is no index, or one of another form: then all is made anew. */
async function existing(folder: string): Promise<PackageIndex | undefined> {
  try {
    return PackageIndex.parse(JSON.parse(await readFile(join(folder, "index.json"), "utf8")));
  } catch {
    return undefined;
  }
}

async function isWhole(folder: string, { packages }: PackageIndex): Promise<boolean> {
  const sizes = await Promise.all(
    packages.map(({ file }) =>
      stat(join(folder, file)).then(
        ({ size }) => size,
        () => undefined,
      ),
    ),
  );
  return packages.every(({ bytes }, index) => sizes[index] === bytes);
}
