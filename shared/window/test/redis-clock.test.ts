import { expect, test } from "@jest/globals";
import { RedisClock, timeIn } from "../src/redis/redis-clock.ts";

/** Unix ms at Redis when the monotonic clock here is at 0. */
const AT_ZERO = 1_700_000_000_000;
/** What a Redis tells that carries a command out at a monotonic time. */
const tells = (at: number) => AT_ZERO + at;

test("what the time at Redis is follows from an answer, and is never taken for later than it was", () => {
  const clock = new RedisClock();
  clock.told(tells(5), 0, 20);
  expect(clock.at(100)).toBe(tells(85));
});

test("of several answers the one counts that was read soonest, whatever kept this process from reading others", () => {
  const clock = new RedisClock();
  clock.told(tells(5), 0, 6);
  clock.told(tells(1000), 999, 4000);
  expect(clock.at(5000)).toBe(tells(4999));
});

test.each([
  ["forward", 3_600_000],
  ["back", -3_600_000],
])("one answer tells of a clock of Redis that was set %s", (_, step) => {
  const clock = new RedisClock();
  clock.told(tells(5), 0, 6);
  clock.told(tells(1001) + step, 1000, 1002);
  expect(clock.at(2000)).toBe(tells(1999) + step);
});

test("the time is read of INFO to the microsecond, and of an INFO without it none is", () => {
  expect(timeIn("# Server\r\nserver_time_usec:1700000000123456\r\nuptime_in_seconds:1")).toBe(1_700_000_000_123.456);
  expect(timeIn("# Memory\r\nused_memory:1")).toBeUndefined();
});
