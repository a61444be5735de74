import { expect, test } from "@jest/globals";
import { GuardedRelay } from "../../../support/guarded-redis.ts";
import { use } from "../../../support/use-relay.ts";
import { AGENTS } from "../catalogue.ts";
import type { Fault } from "./fault.ts";
import { Fleet } from "../../fleet.ts";
import { type SingleFleet, SingleStage } from "./single-stage.ts";
import { survive } from "../survive.ts";

/** A test for each of these faults, injected once, all on one fleet. */
export function surviveEach(faults: readonly Fault<SingleFleet>[]): void {
  const fleet = use(new Fleet(new SingleStage(new GuardedRelay(...AGENTS)), 2));
  test.each(faults)("every promise outlives: $name", async (fault) => {
    expect(await survive(fleet, fault, { times: 1, isAlone: false })).toMatchObject({ violations: [] });
  });
}
