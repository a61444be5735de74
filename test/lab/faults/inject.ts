import { afterAll, expect, test } from "@jest/globals";
import { GuardedRelay } from "../../support/guarded-redis.ts";
import { use } from "../../support/use-relay.ts";
import { Fleet, type SingleFleet, SingleStage, type Stage } from "../fleet.ts";
import { describeMachine, machineText, markdownTable, median, textTable, writeDocument, writeJson } from "../report.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { CLIENT_FAULTS, SERVICE_FAULTS } from "./services.ts";
import { type Fault, type Outcome, survive } from "./survive.ts";

/** Every fault of one Redis that the relay is held against; a line of the table each. */
export const FAULTS: readonly Fault<SingleFleet>[] = [...REDIS_FAULTS, ...SERVICE_FAULTS, ...CLIENT_FAULTS];

/** Names of agents: more than one on each of two connectors, of both algorithms. */
export const AGENTS = ["ada", "bea-hmac", "cid-hmac", "dan-hmac", "eve-hmac", "flo"];
/** Messages between all of them. */
const PER_SECOND = 150;

/** Two connectors over one Redis. */
export function singleFleet(): SingleFleet {
  return new Fleet(new SingleStage(new GuardedRelay(...AGENTS)), { connectors: 2 });
}

/** A test for each of these faults, injected once, all on one fleet. */
export function surviveEach(faults: readonly Fault<SingleFleet>[]): void {
  const fleet = use(singleFleet());
  test.each(faults)("every promise outlives: $name", async (fault) => {
    const outcome = await survive(fleet, fault, { times: 1, perSecond: PER_SECOND, isAlone: false });
    expect(outcome).toMatchObject({ violations: [] });
  });
}

/**
 * A test for each of these faults, injected as often as it says, and in the end the table, on the terminal and as
 * `.local/<part>.json`; with `RELAY_TABLES=write` in its part of docs/reliability.md, too.
 */
export function injectAll<S extends Stage>(
  part: string,
  made: Fleet<S>,
  faults: readonly Fault<Fleet<S>>[],
  perSecond = PER_SECOND,
): void {
  const outcomes: Outcome[] = [];
  afterAll(async () => {
    const lines = faults.map(({ name }) => lineOf(name, outcomes));
    process.stdout.write(`\n${textTable(HEAD, lines)}\n\n${ABOUT}\n\n`);
    const at = new Date().toISOString();
    await writeJson(`${part}.json`, { at, outcomes });
    if (process.env.RELAY_TABLES !== "write") return;
    const about = `${at.slice(0, 10)}, ${machineText(describeMachine())}`;
    await writeDocument("reliability.md", part, `${about}\n\n${markdownTable(HEAD, lines)}\n`);
  });
  const fleet = use(made);

  test.each(faults)("every promise outlives: $name, $times times", async (fault) => {
    const outcome = await survive(fleet, fault, { times: fault.times, perSecond, isAlone: true });
    outcomes.push(outcome);
    expect(outcome.violations).toEqual([]);
  });
}

const HEAD = [
  ...["fault", "times injected", "sent", "acked", "promised", "delivered", "refused", "violations", "forgotten"],
  ...["unavailable median, ms", "max, ms", "recovery median, ms", "max, ms"],
];
const ABOUT =
  "Envelopes are counted once, refusals each time; promised are those that were acked as deliverable in realtime, forgotten those that were taken for new once more. Unavailable: from the first refusal of what concerns an agent that the fault touched until it is served again. Recovery: from the end of the fault until every agent that it touched " +
  "has sent and received again, both acknowledged and delivered; for the gateway, until callers are served again.";

/** A fault that has no outcome says so. */
function lineOf(name: string, outcomes: readonly Outcome[]): string[] {
  const outcome = outcomes.find(({ fault }) => fault === name);
  if (outcome === undefined) return [name, "did not come through"];
  const { times, sent, acked, promised, delivered, refused, violations, forgotten, unavailable, recoveries } = outcome;
  const counts = [times, sent, acked, promised, delivered, refused, violations.length, forgotten];
  const grouped = counts.map((count) => count.toLocaleString("en"));
  return [name, ...grouped, ...spans(unavailable), ...spans(recoveries)];
}

/** Median and longest. */
function spans(ms: readonly number[]): string[] {
  return ms.length === 0 ? ["–", "–"] : [median(ms), Math.max(...ms)].map((span) => span.toFixed(0));
}
