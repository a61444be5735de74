import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { JEST } from "../../../deploy/local/jest.mjs";
import { earlierTree } from "../earlier-tree.ts";
import { PREVIOUS_COMMIT } from "./previous-tree.ts";

/**
 * `npm run test:upgrade [-- --only rollout]`: services of the version before (`previous`, a commit) and of this tree on one Redis. A
 * rollout to this version and back under traffic; then what that version promised its clients, its conformance suite, kept by
 * services of both. Exit code 1 when any of it fails, or the history lacks that commit. Source: docs/upgrading.md.
 */

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));

/** Tests of that suite that hold words of a hint to those of their own version: no version promises them. docs/upgrading.md has it. */
const OF_WORDS = ["invalid_credential says why, each with what to do: wrong_relay"];

const PARTS = {
  rollout: { project: "upgrade", current: [] },
  "current connectors": { project: "upgrade-clients", current: ["ws-connector"] },
  "current gateway and reports": { project: "upgrade-clients", current: ["gateway", "ops-reporting"] },
} as const;

const { values } = parseArgs({ options: { only: { type: "string" } } });
const parts = Object.entries(PARTS).filter(([name]) => values.only === undefined || values.only === name);
if (parts.length === 0) throw new Error(`--only is one of: ${Object.keys(PARTS).join(", ")}`);

await using tree = await earlierTree(PREVIOUS_COMMIT);
for (const [name, { project, current }] of parts) {
  process.stdout.write(`\n${name}, beside services of ${tree.commit}\n`);
  const environment = { RELAY_PREVIOUS_TREE: tree.folder, RELAY_CURRENT_SERVICES: current.join(",") };
  const names = ["--testNamePattern", `^(?!${OF_WORDS.join("$|")}$)`];
  const jest = spawn(
    process.execPath,
    [...JEST, "--selectProjects", project, "--runInBand", "--testTimeout=120000", ...names],
    {
      cwd: REPOSITORY,
      env: { ...process.env, ...environment },
      stdio: "inherit",
    },
  );
  const [code] = await once(jest, "exit");
  if (code !== 0) process.exitCode = 1;
}
