import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { SETTINGS } from "relay-runtime/settings-catalogue.ts";
import { COMMANDS, run } from "../../../connector/src/cli/run.ts";
import { CONNECTOR_ERRORS, RELAY_ERRORS } from "../../../connector/src/errors.ts";
import { USAGE as ADMIN } from "../../../deploy/admin/run.ts";
import { USAGE as KEYS, PAGES as KEYS_PAGES } from "../../../deploy/keys/help.ts";
import { type Place, placesInEntry, placesInHelp, placesInMarkdown } from "./places.ts";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));

/** What is hard to read, by file, catalogue or help page. */
export type Sources = ReadonlyMap<string, readonly Place[]>;

/** New files count before they are added to git. */
export async function readSources(): Promise<Sources> {
  return new Map([
    ...markdownFiles().map((path) => [path, placesInMarkdown(readFileSync(REPOSITORY + path, "utf8"))] as const),
    ...Object.entries(catalogues()).map(([name, entries]) => [name, placesInCatalogue(entries)] as const),
    ...Object.entries(await helpPages()).map(([name, page]) => [name, placesInHelp(page)] as const),
  ]);
}

function markdownFiles(): string[] {
  const arguments_ = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"];
  const listed = execFileSync("git", arguments_, { cwd: REPOSITORY, encoding: "utf8" }).split("\0");
  return [...new Set(listed)].filter((path) => path !== "" && existsSync(REPOSITORY + path));
}

/** Members that are texts for readers, by name of their entry. */
type Catalogue = readonly (readonly [name: string, texts: readonly string[]])[];

function placesInCatalogue(catalogue: Catalogue): Place[] {
  return catalogue.flatMap(([name, texts]) => texts.flatMap((entry) => placesInEntry(name, entry)));
}

function catalogues(): Record<string, Catalogue> {
  const connector = Object.entries({ ...RELAY_ERRORS, ...CONNECTOR_ERRORS });
  return {
    "catalogue: close codes": Object.entries(CLOSE_CODES).map(([name, { advice }]) => [name, [advice]]),
    "catalogue: connector errors": connector.map(([name, { message, hint }]) => [name, [message, hint]]),
    "catalogue: relay errors": Object.entries(ERRORS).map(([name, { title, hint }]) => [name, [title, hint]]),
    "catalogue: settings": Object.entries(SETTINGS).map(([name, { description }]) => [name, [description]]),
  };
}

async function helpPages(): Promise<Record<string, string>> {
  const names = COMMANDS.map(({ name }) => name);
  const pages = await Promise.all(names.map(async (name) => [`help: relay ${name}`, await help(name)] as const));
  const keys = [...KEYS_PAGES].map(([name, page]) => [`help: npm run keys ${name}`, page] as const);
  const npm = { "help: npm run admin": ADMIN, "help: npm run keys": KEYS, ...Object.fromEntries(keys) };
  return { ...npm, "help: relay": await help(), ...Object.fromEntries(pages) };
}

/** Of `relay`, or of one of its commands. */
async function help(...command: string[]): Promise<string> {
  const stdout = new PassThrough();
  const printed = text(stdout);
  const io = { env: {}, stdin: new PassThrough(), stdout, stderr: new PassThrough(), signal: AbortSignal.abort() };
  await run(["help", ...command], io);
  stdout.end();
  return await printed;
}
