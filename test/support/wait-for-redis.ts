import { afterEach, jest } from "@jest/globals";
import { Redis } from "ioredis";
import { BoundedRedis } from "window/redis/bounded-redis.ts";
import { REDIS_LIMITS } from "window/redis/limits.ts";

/** More than any test takes. */
const ENDLESS = 1_000_000;
const replaced: { restore(): void }[] = [];

/**
 * For tests in which a proxy keeps back what Redis says. From the call on, until the test ends, pods in this process give
 * up no call and no channel, however long that takes. Deadlines stay as they are: Redis refuses one that is far ahead.
 */
export function waitForRedis(): void {
  keepChannels();
  setEndless("catchUpMs");
  const unbounded = Redis.prototype.sendCommand;
  const sending = jest.spyOn(BoundedRedis.prototype, "sendCommand").mockImplementation(unbounded);
  replaced.push({ restore: () => sending.mockRestore() });
}

/** As `waitForRedis`, of channels alone. */
export function keepChannels(): void {
  setEndless("maxMissedLoopbacks");
}

function setEndless(limit: "catchUpMs" | "maxMissedLoopbacks"): void {
  replaced.push(jest.replaceProperty(REDIS_LIMITS as Record<typeof limit, number>, limit, ENDLESS));
}

afterEach(() => {
  for (const one of replaced.splice(0)) one.restore();
});
