import { describe, expect, test } from "@jest/globals";
import { isMet } from "../../bench/section.ts";
import { lineOf, type Sample } from "./memory.ts";
import type { Outcome } from "./soak.ts";
import { sectionsOf } from "./verdict.ts";

const PLAN = { minutes: 10, agents: 100 };
const OUTCOME: Outcome = {
  ...{ sent: 60_000, acked: 60_000, promised: 59_000, delivered: 59_000, refused: 0, seconds: 600 },
  ...{ kills: [{ victim: "Redis", median: 1000, last: 2000 }], violations: [], unsettled: 0, unexpectedEnds: [] },
  ...{ lostWithTheDead: 100, heldByTheDead: 10, repeated: 10, failures: {}, problems: {}, failedLooks: 0 },
  samples: samples(() => 100),
};

/** Five cycles of four kills. */
function samples(bytes: (n: number) => number): Sample[] {
  return Array.from({ length: 20 }, (_, n) => ({ pod: bytes(n) }));
}

function unmet(outcome: Partial<Outcome>): string[] {
  const aims = sectionsOf(PLAN, { ...OUTCOME, ...outcome }).flatMap((section) => section.aims);
  return aims.filter((aim) => !isMet(aim)).map(({ name }) => name);
}

describe("A soak of the connectors", () => {
  test("is content with what is level, and with what was lost with the dead", () => {
    expect(unmet({})).toEqual([]);
  });

  test("sees what grows, but not what each kill frees, nor the warm-up", () => {
    expect(unmet({ samples: samples((n) => 100 + 2 * n) })).toHaveLength(1);
    expect(unmet({ samples: samples((n) => 100 + 50 * (n % 4)) })).toEqual([]);
    expect(unmet({ samples: samples((n) => (n < 4 ? 10 : 100)) })).toEqual([]);
  });

  test("draws its line through the means of whole cycles, and none through too few", () => {
    expect(
      lineOf(
        samples((n) => n),
        "pod",
      ),
    ).toEqual({ from: 5.5, to: 17.5 });
    expect(lineOf(samples(() => 1).slice(0, 11), "pod")).toBeUndefined();
  });

  test("is not content with anything lost, hanging, ended, answered otherwise than due, away too long, or left undone", () => {
    const outcomes: Partial<Outcome>[] = [
      { violations: ["promised and lost: a b 1"] },
      { unsettled: 1 },
      { unexpectedEnds: ["gateway"] },
      { failedLooks: 1 },
      { kills: [{ victim: "Redis", median: 1000, last: Number.POSITIVE_INFINITY }] },
      { acked: 1000 },
      { promised: 1000 },
    ];
    for (const outcome of outcomes) expect(unmet(outcome)).toHaveLength(1);
  });
});
