import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { createLogger } from "runtime/logging.ts";
import { ReachLog } from "../src/reach-log.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import type { RedisCalls } from "../src/redis/redis-calls.ts";

/** Partitions whose primary is down. */
let lost: number[];
let lines: string[];

beforeEach(() => {
  [lost, lines] = [[], []];
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const isLost = (key: string) => lost.some((p) => partitionKeys.window(p) === key);
const link = { name: "gateway", serverOf: (key: string) => ({ up: !isLost(key) }) } as unknown as RedisCalls;

/** Runs for a while. Returns what it told of. */
async function told(partitions: number, whatHappens: () => void): Promise<object[]> {
  const logger = createLogger({ service: "test", level: "warn" }, { write: (line) => void lines.push(line) });
  const log = new ReachLog({ link, partitions, logger });
  await log.start();
  whatHappens();
  await log.stop();
  jest.advanceTimersByTime(60_000);
  return lines.map((line) => JSON.parse(line)).map(({ out_of_reach, back }) => ({ out_of_reach, back }));
}

test("The log tells once which partitions go out of reach, and once that they are back", async () => {
  const lines = await told(4, () => {
    lost = [1, 3];
    jest.advanceTimersByTime(20_000);
    lost = [3];
    jest.advanceTimersByTime(20_000);
    lost = [];
    jest.advanceTimersByTime(20_000);
  });
  expect(lines).toEqual([
    { out_of_reach: [1, 3], back: [] },
    { out_of_reach: [3], back: [1] },
    { out_of_reach: [], back: [3] },
  ]);
});

test("Partitions that come and go do not fill the log: after a line there is none for five seconds", async () => {
  const lines = await told(4, () => {
    for (let n = 0; n < 10; n += 1) {
      lost = n % 2 === 0 ? [1] : [];
      jest.advanceTimersByTime(1000);
    }
  });
  expect(lines.length).toBeLessThanOrEqual(2);
});

test("A window of one partition has no such lines: those of its link say the same", async () => {
  const lines = await told(1, () => {
    lost = [0];
    jest.advanceTimersByTime(20_000);
  });
  expect(lines).toEqual([]);
});
