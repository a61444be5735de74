import { expect, test } from "@jest/globals";
import { TestRedis } from "../../../support/test-redis.ts";
import { use } from "../../../support/use-relay.ts";
import { AcceptanceLoad } from "./acceptance-load.ts";

const PER_SECOND = 500;

const redis = use(new TestRedis());

test.each([1, 4])("Load on Redis alone is accepted and comes in whole, over %d partitions", async (partitions) => {
  await redis.restart();
  const targets = ["agent://load.target-1", "agent://load.target-2", "agent://load.target-3"];
  await using load = await AcceptanceLoad.start({ url: redis.url, partitions }, 2, targets);
  const offer = { perSecond: PER_SECOND, warmUpMs: 100, measureMs: 400, pids: load.pids };
  // It throws when an envelope is refused, or does not come in.
  const { deliveredInAll, calls, cpu } = await load.offer(offer);
  expect(deliveredInAll).toBe(PER_SECOND / 2);
  expect(calls).toBeLessThanOrEqual(deliveredInAll);
  expect(Object.values(cpu).every((micros) => micros > 0)).toBe(true);
});

test.each([1, 4])("Load at its most comes in whole, over %d partitions", async (partitions) => {
  await redis.restart();
  const targets = ["agent://load.target-1", "agent://load.target-2", "agent://load.target-3"];
  await using load = await AcceptanceLoad.start({ url: redis.url, partitions }, 2, targets);
  const { delivered, deliveredInAll, calls } = await load.fill({
    inFlight: 20,
    warmUpMs: 100,
    measureMs: 400,
    pids: load.pids,
  });
  expect(deliveredInAll).toBeGreaterThan(delivered);
  // Each call carries what came in while the one before it was under way.
  expect(delivered / calls).toBeGreaterThan(5);
});
