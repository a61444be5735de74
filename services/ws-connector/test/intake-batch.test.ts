import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { createLogger } from "runtime/logging.ts";
import { REDIS_LIMITS } from "window/redis/limits.ts";
import { BATCH_WAIT_MS, IntakeBatch, MOST_IN_BATCH, mayBeHeartbeat } from "../src/intake-batch.ts";

describe("texts of heartbeats", () => {
  let batch: IntakeBatch;
  let taken: number[];
  const join = (n: number) => batch.add(() => void taken.push(n));

  beforeEach(() => {
    jest.useFakeTimers();
    batch = new IntakeBatch({ logger: createLogger({ service: "test", level: "silent" }) });
    taken = [];
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test("are taken in together, in their order, a moment after the first of them", () => {
    join(1);
    jest.advanceTimersByTime(BATCH_WAIT_MS - 1);
    join(2);
    expect(taken).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(taken).toEqual([1, 2]);
  });

  test("go on each, though one of them fails", () => {
    join(1);
    batch.add(() => {
      throw new Error("thrown by the test");
    });
    join(2);
    jest.advanceTimersByTime(BATCH_WAIT_MS);
    expect(taken).toEqual([1, 2]);
  });

  test("go on at once when there are many", () => {
    for (let n = 1; n < MOST_IN_BATCH; n += 1) join(n);
    expect(taken).toEqual([]);
    join(MOST_IN_BATCH);
    expect(taken).toHaveLength(MOST_IN_BATCH);
  });

  test("go on when they are told to, each once; what comes then waits as long as ever", () => {
    join(1);
    jest.advanceTimersByTime(BATCH_WAIT_MS - 1);
    batch.flush();
    join(2);
    jest.advanceTimersByTime(BATCH_WAIT_MS - 1);
    expect(taken).toEqual([1]);
    jest.advanceTimersByTime(1);
    expect(taken).toEqual([1, 2]);
    batch.flush();
    expect(taken).toEqual([1, 2]);
  });
});

test("What a heartbeat waits before it is written, and one call of Redis, fit in the time within which it is acked", () => {
  const { heartbeatGatherMs, commandTimeoutMs } = REDIS_LIMITS;
  expect(BATCH_WAIT_MS + heartbeatGatherMs + commandTimeoutMs).toBeLessThanOrEqual(PRESENCE_LIMITS.heartbeatAckMs);
});

test.each<[string, boolean, object]>([
  ["a heartbeat", true, { type: "agent.heartbeat", payload: {} }],
  ["a heartbeat that takes long to check", false, { type: "agent.heartbeat", payload: { text: "x".repeat(1024) } }],
  ["a register", false, { type: "agent.register", payload: {} }],
  ["a message that quotes one", false, { type: "message.send", payload: { text: 'a "agent.heartbeat"' } }],
])("of texts, %s may wait for a batch: %s", (_, waits, envelope) => {
  expect(mayBeHeartbeat(JSON.stringify(envelope))).toBe(waits);
});
