import { afterAll, afterEach, beforeAll, jest } from "@jest/globals";
import { Redis } from "ioredis";
import { BoundedRedis } from "relay-window/redis/client.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import { watchLeaks } from "./until.ts";

let givesUpCalls = false;

/** For a file about what pods do while Redis does not answer: in others those in its process wait for each answer. */
export function giveUpCalls(): void {
  givesUpCalls = true;
}

/** A machine that stands still makes no call `unavailable`, unless the file says `giveUpCalls` or Redis is paused. */
export function waitForAnswers(): void {
  beforeAll(() => {
    if (!givesUpCalls) BoundedRedis.prototype.sendCommand = Redis.prototype.sendCommand;
  });
}

/** Whatever runs services runs before the first test of a file; after the last one it has ended, and no socket and no process is left. */
export function use<Relay extends { start(): Promise<unknown>; stop(): Promise<void> }>(relay: Relay): Relay {
  const noLeaks = watchLeaks();
  waitForAnswers();
  beforeAll(async () => {
    await relay.start();
  });
  afterAll(async () => {
    await relay.stop();
    await noLeaks();
  });
  return relay;
}

/**
 * What the tests of a file find: made before the first of them, after all that stands above it in the file, and usable
 * from then on. What it holds ends with the relay that made it.
 */
export function given<Thing extends object>(make: () => Thing | Promise<Thing>, withinMs?: number): Thing {
  let made: Thing | undefined;
  beforeAll(async () => {
    made = await make();
  }, withinMs);
  const thing = () => {
    if (made === undefined) throw new Error("Not made yet: only tests and hooks may use what is given.");
    return made;
  };
  return new Proxy({} as Thing, {
    get(_, name) {
      const value = Reflect.get(thing(), name, thing());
      return typeof value === "function" ? value.bind(thing()) : value;
    },
    set: (_, name, value) => Reflect.set(thing(), name, value, thing()),
  });
}

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
