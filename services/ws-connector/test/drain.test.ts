import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type { PodChannel } from "window/pod-channel.ts";
import { drain } from "../src/drain.ts";
import { AGENT, online, RegistrarHarness } from "./registrar-harness.ts";

let harness: RegistrarHarness;
const startDrain = () => {
  const { connection, registrar, releaser } = harness;
  return drain([connection], { registrar, channel: harness.channel as unknown as PodChannel, releaser, drainMs: 0 });
};

beforeEach(() => {
  harness = new RegistrarHarness();
});
afterEach(() => {
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
  jest.useFakeTimers({ doNotFake: ["setImmediate", "nextTick", "performance"] });
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
