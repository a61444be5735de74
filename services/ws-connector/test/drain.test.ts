import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type { PodChannel } from "window/pod-channel.ts";
import { fakeTimers } from "../../../test/support/fake-timers.ts";
import { drain } from "../src/drain.ts";
import { AGENT, online, RegistrarHarness } from "./registrar-harness.ts";

let harness: RegistrarHarness;
const startDrain = (drainMs = 0) => {
  const { connection, registrar, releaser } = harness;
  return drain([connection], { registrar, channel: harness.channel as unknown as PodChannel, releaser, drainMs });
};

beforeEach(() => {
  harness = new RegistrarHarness();
});
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

test("the routes of a connection are released when its last register is answered, and that one's with them", async () => {
  harness.request();
  harness.request();
  const drained = startDrain();
  harness.answer(online(7));
  await setImmediate();
  expect(harness.released).toEqual([]);
  harness.answer(online(8));
  await setImmediate();
  expect(harness.released).toEqual([{ agent: AGENT, connection: "con_1", epoch: 8 }]);
  expect(harness.closedWith).toBeUndefined();
  await harness.catchUp();
  await drained;
  expect(harness.closedWith).toBe(1001);
});

test("a connection takes no agent from the moment that its pod lets it go", async () => {
  expect(harness.registrar.canTake(harness.connection, AGENT)).toBe(true);
  const drained = startDrain();
  expect(harness.registrar.canTake(harness.connection, AGENT)).toBe(false);
  await harness.catchUp();
  await drained;
});

test("a client that does not answer its close is waited for, and disconnected when its time is over", async () => {
  fakeTimers();
  harness.answersItsClose = false;
  let isDrained = false;
  const drained = startDrain().then(() => {
    isDrained = true;
  });
  await harness.catchUp();
  await setImmediate();
  jest.advanceTimersByTime(CONNECTION_LIMITS.outboxStalledAfterMs - 1);
  await setImmediate();
  expect([harness.closedWith, harness.isDisconnected, isDrained]).toEqual([1001, false, false]);
  jest.advanceTimersByTime(1);
  await drained;
  expect(harness.isDisconnected).toBe(true);
});

test.each([
  { random: 0, named: 100 },
  { random: 1, named: 1000 },
])("a client is closed at twice the longest time that a notice names: $named ms of 1000", async ({ random, named }) => {
  jest.spyOn(Math, "random").mockReturnValue(random);
  fakeTimers();
  const drained = startDrain(10_000);
  expect(harness.sent).toMatchObject([{ notice: "draining", reconnect_after_ms: named }]);
  await harness.catchUp();
  await setImmediate();
  jest.advanceTimersByTime(1999);
  await setImmediate();
  expect([harness.released, harness.closedWith]).toEqual([[], undefined]);
  jest.advanceTimersByTime(1);
  await drained;
  expect(harness.closedWith).toBe(1001);
});

test("a drain ends as soon as all clients have left", async () => {
  fakeTimers();
  const drained = startDrain(10_000);
  harness.leave();
  await harness.catchUp();
  await drained;
});
