import { mkdir, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { watchLeaks } from "../../support/leaks.ts";
import { AGENTS, FAULTS } from "./support/catalogue.ts";
import { Fleet } from "./support/fleet.ts";
import type { Outcome } from "./support/outcome.ts";
import { survive } from "./support/survive.ts";
import { missingIn, tableOf } from "./support/table.ts";

const JSON_FILE = new URL("../../../.local/faults.json", import.meta.url);
const NAMES = FAULTS.map(({ name }) => name);
const fleet = new Fleet({ connectors: 2, names: AGENTS });
const noLeaks = watchLeaks();
const outcomes: Outcome[] = [];

beforeAll(async () => {
  await fleet.start();
});
afterAll(async () => {
  process.stdout.write(`\n${tableOf(NAMES, outcomes)}\n`);
  await mkdir(new URL(".", JSON_FILE), { recursive: true, mode: 0o700 });
  await writeFile(JSON_FILE, `${JSON.stringify({ at: new Date().toISOString(), outcomes }, null, 1)}\n`);
  await fleet.stop();
  await noLeaks();
});

test.each(FAULTS)("every promise outlives: $name, $times times", async (fault) => {
  const outcome = await survive(fleet, fault, { times: fault.times, isAlone: true });
  outcomes.push(outcome);
  expect(outcome.violations).toEqual([]);
});

test("every fault was injected, and the table is complete", () => {
  expect(missingIn(NAMES, outcomes)).toEqual([]);
});
