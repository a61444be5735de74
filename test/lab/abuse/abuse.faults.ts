import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { watchLeaks } from "../../support/until.ts";
import { writeJson } from "../report.ts";
import { Bystanders } from "./bystanders.ts";
import { ATTACKS } from "./catalogue.ts";
import { Deployment } from "./deployment.ts";
import { endure } from "./endure.ts";
import { brokenBy, type Outcome, tableOf } from "./figures.ts";

const relay = new Deployment();
const bystanders = new Bystanders(relay);
const noLeaks = watchLeaks();
const outcomes: Outcome[] = [];

beforeAll(async () => {
  await relay.start();
});
afterAll(async () => {
  process.stdout.write(`\n${tableOf(ATTACKS, outcomes)}\n`);
  await writeJson("abuse.json", { at: new Date().toISOString(), outcomes });
  await bystanders.leave();
  await relay.stop();
  await noLeaks();
});

test.each(ATTACKS)("bystanders notice nothing of: $name", async (attack) => {
  const outcome = await endure(relay, bystanders, attack);
  outcomes.push(outcome);
  expect(brokenBy(outcome, attack.allows)).toEqual([]);
});
