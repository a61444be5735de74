import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { Keepalive } from "../src/keepalive.ts";
import { ANSWER_WITHIN_MS } from "../src/limits.ts";

const INTERVAL_MS = 15_000;
const TICK_MS = 1000;
const sendHeartbeat = jest.fn();
const timedOut = jest.fn();
let keepalive: Keepalive;

beforeEach(() => {
  jest.useFakeTimers();
  keepalive = new Keepalive({ intervalMs: INTERVAL_MS, sendHeartbeat, timedOut });
  keepalive.start();
});

afterEach(() => {
  keepalive.stop();
  jest.useRealTimers();
  jest.restoreAllMocks();
  jest.clearAllMocks();
});

test("A heartbeat goes out in every interval, and no more than one", () => {
  for (let n = 1; n <= 10; n += 1) {
    jest.advanceTimersByTime(INTERVAL_MS);
    expect(sendHeartbeat.mock.calls.length).toBeGreaterThanOrEqual(n);
    expect(sendHeartbeat.mock.calls.length).toBeLessThanOrEqual(n + 1);
  }
});

test("A connection ends when a request has no answer in time, and nothing else came in", () => {
  keepalive.requestSent();
  jest.advanceTimersByTime(ANSWER_WITHIN_MS);
  keepalive.frameReceived();
  jest.advanceTimersByTime(ANSWER_WITHIN_MS);
  keepalive.requestSent();
  jest.advanceTimersByTime(ANSWER_WITHIN_MS / 2);
  keepalive.requestSent();
  jest.advanceTimersByTime(ANSWER_WITHIN_MS / 2);
  expect(timedOut).not.toHaveBeenCalled();
  jest.advanceTimersByTime(2 * TICK_MS);
  expect(timedOut).toHaveBeenCalled();
});

test("A connection ends when nothing is answered for two intervals after a heartbeat, whatever else comes in", () => {
  const seconds = (count: number) => {
    for (let n = 0; n < count; n += 1) {
      jest.advanceTimersByTime(TICK_MS);
      keepalive.frameReceived();
    }
  };
  keepalive.heartbeatSent();
  seconds((2 * INTERVAL_MS) / TICK_MS);
  keepalive.answered();
  keepalive.heartbeatSent();
  seconds((2 * INTERVAL_MS) / TICK_MS);
  expect(timedOut).not.toHaveBeenCalled();
  keepalive.heartbeatSent();
  seconds(1);
  expect(timedOut).toHaveBeenCalled();
});

test("A connection with a short interval ends when a request has no answer for that long", () => {
  keepalive.stop();
  keepalive = new Keepalive({ intervalMs: 400, sendHeartbeat, timedOut });
  keepalive.start();
  keepalive.requestSent();
  jest.advanceTimersByTime(400);
  expect(timedOut).not.toHaveBeenCalled();
  jest.advanceTimersByTime(200);
  expect(timedOut).toHaveBeenCalled();
});

test("A process that stood still for an interval reads what came in before it gives its connection up", () => {
  keepalive.stop();
  keepalive = new Keepalive({ intervalMs: 400, sendHeartbeat, timedOut });
  keepalive.start();
  keepalive.requestSent();
  const [monotonic, machine] = [performance.now(), Date.now()];
  jest.spyOn(performance, "now").mockImplementation(() => monotonic + 2000);
  jest.spyOn(Date, "now").mockImplementation(() => machine + 2000);
  jest.advanceTimersByTime(100);
  expect(timedOut).not.toHaveBeenCalled();
});

test("After a sleep of the machine a heartbeat goes out at once, and nothing ends", () => {
  keepalive.requestSent();
  keepalive.heartbeatSent();
  jest.setSystemTime(Date.now() + 3_600_000);
  jest.advanceTimersByTime(TICK_MS);
  expect(sendHeartbeat).toHaveBeenCalledTimes(1);
  jest.advanceTimersByTime(ANSWER_WITHIN_MS);
  expect(sendHeartbeat).toHaveBeenCalledTimes(1);
  expect(timedOut).not.toHaveBeenCalled();
});
