import { afterAll, expect, test } from "@jest/globals";
import { use } from "../../support/use-relay.ts";
import { writeDocument, writeJson } from "../bench/document.ts";
import { describeMachine, machineText } from "../bench/machine.ts";
import type { Fault } from "./support/fault.ts";
import { Fleet } from "../fleet.ts";
import type { Outcome } from "./support/outcome.ts";
import type { Stage } from "../stages.ts";
import { survive } from "./survive.ts";
import { markdownOf, missingIn, tableOf } from "./support/table.ts";

/**
 * A test for each of these faults, injected as often as it says, and in the end the table, on the terminal and as
 * `.local/<part>.json`; with `RELAY_TABLES=write` in its part of docs/reliability.md, too.
 */
export function injectAll<S extends Stage>(part: string, stage: S, faults: readonly Fault<Fleet<S>>[]): void {
  const names = faults.map(({ name }) => name);
  const outcomes: Outcome[] = [];
  afterAll(async () => {
    process.stdout.write(`\n${tableOf(names, outcomes)}\n`);
    const at = new Date().toISOString();
    await writeJson(`${part}.json`, { at, outcomes });
    if (process.env.RELAY_TABLES !== "write") return;
    const about = `${at.slice(0, 10)}, ${machineText(describeMachine())}`;
    await writeDocument("reliability.md", part, `${about}\n\n${markdownOf(names, outcomes)}\n`);
  });
  const fleet = use(new Fleet(stage, 2));

  test.each(faults)("every promise outlives: $name, $times times", async (fault) => {
    const outcome = await survive(fleet, fault, { times: fault.times, isAlone: true });
    outcomes.push(outcome);
    expect(outcome.violations).toEqual([]);
  });

  test("every fault was injected, and the table is complete", () => {
    expect(missingIn(names, outcomes)).toEqual([]);
  });
}
