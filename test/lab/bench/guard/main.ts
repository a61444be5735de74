import { parseArgs } from "node:util";
import { earlierTree } from "../../earlier-tree.ts";
import { Measurements } from "./measure.ts";
import { type Ratios, record, recorded, recordedCommit, verdictOf } from "./verdict.ts";

/**
 * `npm run bench:guard`: fails when an envelope costs more CPU than is recorded, beside the bare relay and beside the relay of an
 * earlier commit. A minute and a half when nothing is wrong. `--record` records what was measured, and the present commit. Source:
 * docs/performance.md#guard.
 */

/** Another program on the machine slows some turns, and the middle of three times as many less. */
const MOST_TRIES = 3;

const { values } = parseArgs({ options: { record: { type: "boolean", default: false } } });
const expected = await recorded();
await using before = await earlierTree(await recordedCommit()).catch((error: Error) => {
  process.stdout.write(`Only one load is measured. ${error.message}\n`);
  return undefined;
});
const measurements = new Measurements(before);
let ratios = await measurements.more();
for (let tries = 1; tries < MOST_TRIES && (values.record || isSlower(ratios)); tries += 1)
  ratios = await measurements.more();

if (values.record) await record(ratios);
const compared = await recorded();
for (const [load, ratio] of Object.entries(ratios)) {
  const verdict = verdictOf(load, ratio, compared);
  process.stdout.write(
    `${load}: ${ratio.toFixed(2)} times the CPU of what it is compared with, recorded ${compared[load]}: ${verdict}\n`,
  );
  if (verdict === "slower") process.exitCode = 1;
}

function isSlower(measured: Ratios): boolean {
  return Object.entries(measured).some(([load, ratio]) => verdictOf(load, ratio, expected) === "slower");
}
