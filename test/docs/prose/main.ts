import { parseArgs } from "node:util";
import { KINDS } from "./places.ts";
import { changesOf, countsOf, lowered, record, recorded } from "./record.ts";
import { readSources } from "./sources.ts";

/**
 * `npm run prose -- docs/redis.md …` prints what is hard to read in these texts, by the names of `recorded.json`.
 * `npm run prose -- --record` lowers the recorded counts. It changes nothing, and fails, if a count is above its record.
 */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { record: { type: "boolean", default: false } },
});
const sources = await readSources();
for (const name of positionals) {
  const places = sources.get(name);
  if (places === undefined) fail(`There is no text ${name} among: ${[...sources.keys()].join(", ")}`);
  for (const { kind, at, text } of places ?? []) process.stdout.write(`${name}: ${at}: ${KINDS[kind]}: ${text}\n`);
}

if (values.record) {
  const counts = countsOf(sources);
  const risen = changesOf(recorded(), counts).filter((change) => change.counted > change.recorded);
  for (const { source, kind, recorded: most, counted } of risen) {
    fail(`${source}: ${counted} ${KINDS[kind]}, ${most} recorded`);
  }
  if (risen.length === 0) record(lowered(recorded(), counts));
}

function fail(why: string): void {
  process.stderr.write(`${why}\n`);
  process.exitCode = 1;
}
