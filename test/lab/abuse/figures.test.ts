import { describe, expect, test } from "@jest/globals";
import type { Outcome } from "./support/outcome.ts";
import { BOUNDS, brokenBy } from "./support/promises.ts";
import { figuresOf, type Sample, type SampleKind } from "./samples.ts";
import { missingIn, tableOf } from "./support/table.ts";

const sample = (kind: SampleKind, ms: number, refused?: string): Sample => ({
  kind,
  at: 0,
  ms,
  ...(refused === undefined ? {} : { refused }),
});
const ms = (kind: SampleKind, ...values: number[]) => values.map((value) => sample(kind, value));

const QUIET = figuresOf([...ms("message", 1, 2, 3), ...ms("heartbeat", 5), ...ms("health", 4)]);
const usage = (seconds: number, mebibytes: number) => ({
  cpu: { connector: seconds, "other connector": seconds, gateway: seconds, reports: seconds, redis: seconds },
  resident: { connector: mebibytes * 2 ** 20 },
  redisBytes: mebibytes * 2 ** 20,
});
const outcome: Outcome = {
  attack: "noise",
  attacked: { connections: 3, frames: 1200, bytes: 4_500_000, faults: [] },
  cpuSeconds: 0.5,
  before: usage(1, 10),
  end: usage(3, 20),
  during: QUIET,
  after: QUIET,
  lost: 0,
  faults: [],
  notes: [],
};

describe("figures of bystanders", () => {
  test("take messages and sessions together, and by the nearest rank", () => {
    const twenty = Array.from({ length: 18 }, (_, n) => n + 1);
    const figures = figuresOf([...ms("message", ...twenty), ...ms("session", 19, 20), ...ms("gateway", 999)]);
    expect(figures).toMatchObject({ count: 21, ackMedian: 10, ackP95: 19, ackMax: 20 });
  });

  test("know heartbeats by their p95 and /health by its slowest answer", () => {
    const figures = figuresOf([...ms("heartbeat", ...Array<number>(19).fill(10), 700), ...ms("health", 1, 80)]);
    expect(figures).toMatchObject({ heartbeatP95: 10, healthMax: 80, ackP95: Number.NaN });
  });

  test("count each refusal by what was asked for", () => {
    const all = [
      sample("message", 1, "unavailable"),
      sample("message", 1, "unavailable"),
      sample("presence", 1, "503"),
    ];
    expect(figuresOf(all).refused).toEqual({ "message unavailable": 2, "presence 503": 1 });
  });
});

describe("the promise", () => {
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
    const refused = { "session over_capacity": 2 };
    expect(brokenBy(during({ refused }))).toEqual(["session over_capacity 2 × during"]);
    expect(brokenBy(during({ refused }), ["session over_capacity"])).toEqual([]);
    expect(brokenBy(afterwards({ refused }), ["session over_capacity"])).toHaveLength(1);
  });

  test("is broken by what was lost, and by what attacker and witness saw", () => {
    expect(brokenBy({ ...outcome, lost: 1, faults: ["a fault"] })).toHaveLength(2);
  });
});

describe("the table", () => {
  test("has a line for each attack: its size, what it cost whom, and what bystanders noticed", () => {
    const [head, line] = tableOf([{ name: "noise" }], [outcome]).split("\n");
    expect(head).toMatch(/^attack +connections +frames +MB +attacker CPU, s +connectors +gateway/);
    expect(line).toMatch(
      /^noise +3 +1,200 +4\.5 +0\.5 +4\.0 +2\.0 +2\.0 +2\.0 +10 +20 +10\.0 +20\.0 +2 +3 +3 +3 +3 +5 +4 +0$/,
    );
  });

  test("names below what was broken, and what a witness has to tell", () => {
    const told = tableOf([{ name: "noise" }], [{ ...outcome, lost: 2, notes: ["all served again"] }]);
    expect(told).toMatch(/^noise: all served again$/m);
    expect(told).toMatch(/^noise: 2 acked in realtime did not arrive$/m);
  });

  test("says of an attack without an outcome that it did not come through", () => {
    const both = [{ name: "noise" }, { name: "silence" }];
    expect(tableOf(both, [outcome])).toMatch(/\nsilence +did not come through\n/);
    expect(missingIn(both, [outcome])).toEqual(["silence"]);
  });
});
