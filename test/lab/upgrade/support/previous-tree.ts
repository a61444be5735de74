import { readFileSync } from "node:fs";

/** The commit of the version before: the last release, of which services may run beside those of this tree on one Redis. */
export const PREVIOUS_COMMIT = readFileSync(new URL("../previous", import.meta.url), "utf8").trim();

/** Where `main.ts` has checked it out. @throws Error when it was not started by that. */
export function previousTree(): string {
  const { RELAY_PREVIOUS_TREE } = process.env;
  if (RELAY_PREVIOUS_TREE === undefined) throw new Error("Start it as: npm run test:upgrade");
  return RELAY_PREVIOUS_TREE;
}
