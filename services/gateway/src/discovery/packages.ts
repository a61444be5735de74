import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  ADDRESS,
  CONNECTOR_PACKAGE,
  type Connectors,
  type PackageRecord,
  RELAY_ADDRESS,
} from "relay-protocol/contract/packages.ts";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { type PACKAGE_SURFACES, SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import { readPackageIndex } from "relay-runtime/package-index.ts";
import { SettingsError } from "relay-runtime/settings.ts";
import { SERVICE } from "./relay-description.ts";

/** A package with its bytes. */
interface PackedFile extends PackageRecord {
  readonly content: Buffer;
}

/** The packages that this relay hands out, by file name. It reads no file but those in the index. */
export type Packages = ReadonlyMap<string, PackedFile>;

/**
 * Reads all packages into memory, a few megabytes in total. So a path gives the same bytes until the process ends,
 * whatever happens to the folder.
 * @throws SettingsError when a file is not what the index says of it.
 */
export function readPackages(folder: string | undefined): Packages {
  const { packages } = readPackageIndex(folder);
  return new Map(packages.map((record) => [record.file, { ...record, content: contentOf(folder as string, record) }]));
}

function contentOf(folder: string, { file, integrity }: PackageRecord): Buffer {
  const content = readOrNothing(join(folder, file));
  if (`sha512-${createHash("sha512").update(content).digest("base64")}` === integrity) return content;
  throw new SettingsError([`RELAY_PACKAGES_DIR: ${file} is not what index.json says; run npm run packages`]);
}

function readOrNothing(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

/** The connector for npm; undefined when the relay hands out none. */
export function connectorOf(packages: Packages): PackedFile | undefined {
  return [...packages.values()].find(({ name }) => name === CONNECTOR_PACKAGE);
}

/** Where a package is, always under the same path for the same bytes. */
export function addressOf({ file }: PackageRecord, baseUrl: string): string {
  return baseUrl + pathOf(file);
}

function pathOf(file: string): string {
  return SURFACES.packageFile.path.replace("{file}", file);
}

/** GET /connectors. */
function connectorsDocument(packages: Packages, baseUrl: string): Connectors {
  return {
    ok: true,
    service: SERVICE,
    base_url: baseUrl,
    packages: [...packages.values()].map(({ content: _content, file, usage, first_program, ...record }) => {
      const url = baseUrl + pathOf(file);
      const lineOf = (line: string) => line.replaceAll(ADDRESS, url).replaceAll(RELAY_ADDRESS, baseUrl);
      const lines = usage.map((one) => ({ for: one.for, line: lineOf(one.line) }));
      const program = first_program && { first_program: first_program.replaceAll(RELAY_ADDRESS, baseUrl) };
      return { ...record, usage: lines, ...program, path: pathOf(file), url };
    }),
    note: packages.size === 0 ? NONE : SOME,
  };
}

const SOME =
  "No path ever gives two contents: a new content gets a new version and path, and the former path is 404. Nothing here needs a registry but what `needs` names. The line of pip checks the content; that of npm cannot: npm writes `integrity` into package-lock.json, to compare.";
const NONE =
  "This relay hands out no packages: its operator has set no RELAY_PACKAGES_DIR. In a clone of the relay's repository, npm run packages makes them.";

type PackageHandlers = Pick<Handlers<"gateway">, keyof typeof PACKAGE_SURFACES>;

interface Parts {
  readonly packages: Packages;
  readonly settings: { readonly baseUrl: string };
}

const FOR_EVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";

/** The packages that the relay hands out. Source: docs/protocol.md#discovery. */
export function packageEndpoints({ packages, settings }: Parts): PackageHandlers {
  const connectors = connectorsDocument(packages, settings.baseUrl);
  const newest = connectorOf(packages);
  return {
    connectors: () => connectors,
    packageFile: (ctx) => {
      const found = packages.get(ctx.params.file ?? "");
      if (found === undefined) throw unknownPackage();
      ctx.set("Cache-Control", FOR_EVER);
      ctx.type = found.media;
      return found.content;
    },
    // The content rather than a redirect: a download that follows none (curl -O) would save an empty file.
    newestConnector: (ctx) => {
      if (newest === undefined) throw unknownPackage();
      ctx.set("Cache-Control", ASK_AGAIN);
      // Saved under its own name, a download tells its version.
      ctx.set("Content-Disposition", `attachment; filename="${newest.file}"`);
      return newest.content;
    },
  };
}

function unknownPackage(): ServiceError {
  return new ServiceError("not_found", { detail: "This relay hands out no such package; GET /connectors lists them." });
}
