import { readFile } from "node:fs/promises";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { LIMITS } from "relay-runtime/metrics/catalogue.ts";
import { SETTINGS } from "relay-runtime/settings-catalogue.ts";
import { sourceFiles } from "../support/sources.ts";

/**
 * `npm run promises` prints each promise of a catalogue, and the test files that name it: first the one that does so most often.
 * It fails if no test names a promise.
 */

const TEST_FILE = /(?:\/test_[a-z_]+\.py|\.(?:test|ci|browser|cluster|containers|clients|faults)\.ts)$/;
const BEHAVIOUR = "test/connectors/behaviour.json";
const MOST_SHOWN = 3;

/** @param words any of them in a test names the promise. */
type Promised = readonly [kind: string, name: string, words: readonly string[]];

const promises: readonly Promised[] = [
  ...Object.keys(ERRORS).map((code) => ["error code", code, [code]] as const),
  ...Object.entries(CLOSE_CODES).map(
    ([name, { code }]) => ["close code", `${code} ${name}`, [`CLOSE_CODES.${name}`, String(code)]] as const,
  ),
  ...LIMITS.map((name) => ["limit", name, [name]] as const),
  ...Object.keys(SETTINGS).map((name) => ["setting", name, [name, fieldOf(name)]] as const),
];
const scenarios: readonly { name: string }[] = JSON.parse(
  await readFile(new URL(`../../${BEHAVIOUR}`, import.meta.url), "utf8"),
);
const tests = (await sourceFiles()).filter(({ path }) => TEST_FILE.test(path));

for (const promised of promises) {
  const [kind, name] = promised;
  const files = filesThatName(promised);
  const more = files.length > MOST_SHOWN ? `, and ${files.length - MOST_SHOWN} more` : "";
  process.stdout.write(`${kind}\t${name}\t${files.slice(0, MOST_SHOWN).join(", ") || "NO TEST"}${more}\n`);
  if (files.length === 0) process.exitCode = 1;
}
for (const { name } of scenarios) process.stdout.write(`scenario\t${name}\t${BEHAVIOUR}, in both languages\n`);

function filesThatName([, , words]: Promised): string[] {
  const pattern = new RegExp(`(?<![\\w.-])(?:${words.join("|").replaceAll(".", "\\.")})(?![\\w-])`, "g");
  return tests
    .map(({ path, text }) => ({ path, count: text.match(pattern)?.length ?? 0 }))
    .filter(({ count }) => count > 0)
    .toSorted((one, other) => other.count - one.count)
    .map(({ path }) => path);
}

/** A setting's member in the object that a service gets: `RELAY_DRAIN_MS` is `drainMs`. */
function fieldOf(name: string): string {
  return name
    .replace(/^RELAY_/, "")
    .toLowerCase()
    .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
