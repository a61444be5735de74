import { beforeEach, expect, test } from "@jest/globals";
import type { Logger } from "runtime/logging.ts";
import { ClockOffset } from "../src/redis/clock-offset.ts";

let lines: [string, object][];
let offset: ClockOffset;

beforeEach(() => {
  lines = [];
  const logger = {
    warn: (context: object) => lines.push(["warn", context]),
    info: (context: object) => lines.push(["info", context]),
  };
  offset = new ClockOffset("gateway@1", logger as unknown as Logger);
});

test("a clock of Redis that is more than a second ahead or behind is told once, and once when it is right again", () => {
  for (const unixMs of [12_500, 12_600, 10_100, 8_000, 9_500]) offset.told(unixMs, 10_000, 10_200);
  expect(lines).toEqual([
    ["warn", { link: "gateway@1", offset_ms: 2300 }],
    ["info", { link: "gateway@1", offset_ms: 0 }],
    ["warn", { link: "gateway@1", offset_ms: -2000 }],
    ["info", { link: "gateway@1", offset_ms: -500 }],
  ]);
});

test("an answer that took long calls no clock wrong that may be right", () => {
  offset.told(10_000, 10_000, 15_000);
  offset.told(15_000, 10_000, 15_000);
  expect([offset.ms, lines]).toEqual([0, []]);
});
