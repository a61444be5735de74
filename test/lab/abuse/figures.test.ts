import { describe, expect, test } from "@jest/globals";
import { BOUNDS, brokenBy, figuresOf, type Outcome, type Sample, type SampleKind } from "./figures.ts";

const sample = (kind: SampleKind, ms: number, refused?: string): Sample => ({
  ...{ kind, at: 0, ms },
  ...(refused === undefined ? {} : { refused }),
});
const ms = (kind: SampleKind, ...values: number[]) => values.map((value) => sample(kind, value));

const QUIET = figuresOf([...ms("message", 1, 2, 3), ...ms("heartbeat", 5), ...ms("health", 4)]);
const usage = { cpu: {}, resident: {}, redisBytes: 0 };
const outcome: Outcome = {
  ...{ attack: "noise", attacked: { connections: 3, frames: 1200, bytes: 4_500_000, faults: [] }, cpuSeconds: 0.5 },
  ...{ before: usage, end: usage, during: QUIET, after: QUIET, violations: [], faults: [], notes: [] },
};

describe("What bystanders noticed", () => {
  test("takes messages and sessions together, and by the nearest rank", () => {
    const twenty = Array.from({ length: 18 }, (_, n) => n + 1);
    const figures = figuresOf([...ms("message", ...twenty), ...ms("session", 19, 20), ...ms("gateway", 999)]);
    expect(figures).toMatchObject({ count: 21, ackMedian: 10, ackP95: 19, ackMax: 20 });
  });

  test("knows heartbeats by their p95 and /health by its slowest answer", () => {
    const figures = figuresOf([...ms("heartbeat", ...Array<number>(19).fill(10), 700), ...ms("health", 1, 80)]);
    expect(figures).toMatchObject({ heartbeatP95: 10, healthMax: 80, ackP95: Number.NaN });
  });
});

describe("The promise to bystanders", () => {
  const during = (figures: Partial<typeof QUIET>) => ({ ...outcome, during: { ...QUIET, ...figures } });
  const afterwards = (figures: Partial<typeof QUIET>) => ({ ...outcome, after: { ...QUIET, ...figures } });

  test("is kept at its bounds, and where nothing was asked", () => {
    expect(brokenBy(during(BOUNDS))).toEqual([]);
    expect(brokenBy({ ...outcome, during: figuresOf([]), after: figuresOf([]) })).toEqual([]);
  });

  test.each(Object.entries(BOUNDS))("is broken beyond %s, during an attack and after it", (name, bound) => {
    expect(brokenBy(during({ [name]: bound + 1 }))).toHaveLength(1);
    expect(brokenBy(afterwards({ [name]: bound + 1 }))).toHaveLength(1);
  });

  test("is broken by a refusal, but for those that an attack allows while it goes on", () => {
    const { refused } = figuresOf([sample("session", 1, "over_capacity"), sample("session", 1, "over_capacity")]);
    expect(brokenBy(during({ refused }))).toEqual(["session over_capacity 2 × during"]);
    expect(brokenBy(during({ refused }), ["session over_capacity"])).toEqual([]);
    expect(brokenBy(afterwards({ refused }), ["session over_capacity"])).toHaveLength(1);
  });

  test("is broken by what was lost, and by what attacker and witness saw", () => {
    const violations = [{ kind: "promised and lost", id: "e" }] as const;
    expect(brokenBy({ ...outcome, violations, faults: ["a fault"] })).toEqual(["a fault", "1 × promised and lost"]);
  });
});
