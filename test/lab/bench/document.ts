import { mkdir, readFile, writeFile } from "node:fs/promises";

/** Where measuring tools leave their figures. */

const REPOSITORY = new URL("../../../", import.meta.url);

/** Everything that was measured, as `.local/<file>`. Returns where it stands. */
export async function writeJson(file: string, measured: unknown): Promise<URL> {
  const folder = new URL(".local/", REPOSITORY);
  await mkdir(folder, { recursive: true });
  await writeFile(new URL(file, folder), `${JSON.stringify(measured, null, 1)}\n`);
  return new URL(file, folder);
}

/** Puts a text into its part of `docs/<document>`. */
export async function writeDocument(document: string, part: string, text: string): Promise<void> {
  const file = new URL(`docs/${document}`, REPOSITORY);
  await writeFile(file, insertedInto(await readFile(file, "utf8"), part, text));
}

/**
 * What stands between `<!-- part: … -->` and `<!-- /part -->` is the tool's.
 * @throws Error when the document has no place for it.
 */
export function insertedInto(document: string, part: string, text: string): string {
  const place = new RegExp(`(<!-- ${part}: [^>]*-->\\n)[\\s\\S]*(<!-- /${part} -->)`);
  if (!place.test(document)) throw new Error(`The document has no place for: ${part}`);
  return document.replace(place, (_, open, close) => `${open}\n${text}\n${close}`);
}
