import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { watchLeaks } from "../support/leaks.ts";
import { AGENTS, FAULTS } from "./support/catalogue.ts";
import { Cluster } from "./support/cluster.ts";
import { REDIS_FAULTS } from "./support/redis-faults.ts";
import { survive } from "./support/survive.ts";

const cluster = new Cluster({ connectors: 2, names: AGENTS });
const noLeaks = watchLeaks();

beforeAll(async () => {
  await cluster.start();
});
afterAll(async () => {
  await cluster.stop();
  await noLeaks();
});

const faults = FAULTS.filter((fault) => !REDIS_FAULTS.includes(fault) && !fault.isLong);
test.each(faults)("every promise outlives: $name", async (fault) => {
  expect(await survive(cluster, fault)).toMatchObject({ violations: [] });
});
