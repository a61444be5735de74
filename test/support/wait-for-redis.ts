import { afterEach, jest } from "@jest/globals";
import { REDIS_LIMITS } from "window/redis/limits.ts";
import { ServerChannel } from "window/server-channel.ts";

/**
 * For tests in which a proxy keeps back what Redis says. From the call on, until the test ends, pods in this process give
 * up no call and no channel, however long that takes.
 */
export function waitForRedis(): void {
  const { setTimeout } = globalThis;
  const patiently = (run: () => void, ms?: number) =>
    ms === REDIS_LIMITS.commandTimeoutMs ? setTimeout(() => {}, 0) : setTimeout(run, ms);
  jest.spyOn(globalThis, "setTimeout").mockImplementation(patiently as typeof setTimeout);
  jest.spyOn(ServerChannel.prototype, "look").mockResolvedValue();
}

afterEach(() => {
  jest.restoreAllMocks();
});
