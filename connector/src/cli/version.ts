import { readFile } from "node:fs/promises";

/** The package's version. */
export async function version(): Promise<string> {
  return JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")).version;
}
