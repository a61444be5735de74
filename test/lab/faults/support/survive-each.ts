import { expect, test } from "@jest/globals";
import { use } from "../../../support/use-relay.ts";
import { AGENTS } from "./catalogue.ts";
import { Cluster } from "./cluster.ts";
import type { Fault } from "./fault.ts";
import { survive } from "./survive.ts";

/** A test for each of these faults, injected once, all on one cluster. */
export function surviveEach(faults: readonly Fault[]): void {
  const cluster = use(new Cluster({ connectors: 2, names: AGENTS }));
  test.each(faults)("every promise outlives: $name", async (fault) => {
    expect(await survive(cluster, fault, { times: 1, isAlone: false })).toMatchObject({ violations: [] });
  });
}
