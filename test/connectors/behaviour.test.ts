import { afterAll, describe, expect, test } from "@jest/globals";
import { use } from "../support/relay-under-test.ts";
import { given } from "../support/use-relay.ts";
import { performAll } from "./performances.ts";
import { allRuns, SCENARIOS, spoilt } from "./scenario.ts";
import { BehaviourStage } from "./stage.ts";

const WITHIN_MS = 90_000;
const runs = allRuns();
const wrongRuns = spoilt(runs);
// All runs are performed, whichever tests are asked for: the stage ends after them.
afterAll(async () => {
  await Promise.all(outcomes.values());
});
const stage = use(new BehaviourStage([...runs, ...wrongRuns]));
const outcomes = given(() => performAll(stage.casts));

describe.each(SCENARIOS)("$name:", (scenario) => {
  const own = runs.filter((run) => run.scenario === scenario);
  test.each(own.map((run) => ({ run, who: run.languages.join(" and ") })))(
    "in $who",
    async ({ run }) => {
      const wrong = await outcomes.get(run);
      if (wrong !== undefined) throw wrong;
    },
    WITHIN_MS,
  );
});

test("A run fails whose expectations do not hold, and one that leaves something unheard", async () => {
  for (const run of wrongRuns) expect(await outcomes.get(run)).toEqual(expect.any(Error));
});
