import { expect, test } from "@jest/globals";
import { METRICS } from "runtime/metrics/catalogue.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";

test("The buckets of the metrics about Redis end at the limits that they are about", () => {
  expect(METRICS.relay_acceptance_batch_size.buckets.at(-1)).toBe(REDIS_LIMITS.acceptanceBatch);
  expect(METRICS.relay_redis_call_seconds.buckets.at(-1)).toBe(REDIS_LIMITS.commandTimeoutMs / 1000);
});
