import { mkdir, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { watchLeaks } from "../../support/until.ts";
import { Bystanders } from "./bystanders.ts";
import { ATTACKS } from "./catalogue.ts";
import { Deployment } from "./deployment.ts";
import { endure } from "./endure.ts";
import type { Outcome } from "./support/outcome.ts";
import { brokenBy } from "./support/promises.ts";
import { missingIn, tableOf } from "./support/table.ts";

const JSON_FILE = new URL("../../../.local/abuse.json", import.meta.url);
const relay = new Deployment();
const bystanders = new Bystanders(relay);
const noLeaks = watchLeaks();
const outcomes: Outcome[] = [];

beforeAll(async () => {
  await relay.start();
});
afterAll(async () => {
  process.stdout.write(`\n${tableOf(ATTACKS, outcomes)}\n`);
  await mkdir(new URL(".", JSON_FILE), { recursive: true, mode: 0o700 });
  await writeFile(JSON_FILE, `${JSON.stringify({ at: new Date().toISOString(), outcomes }, null, 1)}\n`);
  await bystanders.leave();
  await relay.stop();
  await noLeaks();
});

test.each(ATTACKS)("bystanders notice nothing of: $name", async (attack) => {
  const outcome = await endure(relay, bystanders, attack);
  outcomes.push(outcome);
  expect(brokenBy(outcome, attack.allows)).toEqual([]);
});

test("every attack was launched, and the table is complete", () => {
  expect(missingIn(ATTACKS, outcomes)).toEqual([]);
});
