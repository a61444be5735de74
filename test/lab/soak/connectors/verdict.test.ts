import { describe, expect, test } from "@jest/globals";
import { isMet } from "../../report.ts";
import { courseOf, type Outcome, type Sample, sectionsOf } from "./verdict.ts";

const PLAN = { minutes: 10, agents: 100 };
const OUTCOME: Outcome = {
  ...{ sent: 60_000, acked: 60_000, promised: 59_000, delivered: 59_000, refused: 0, seconds: 600 },
  ...{ kills: [{ victim: "Redis", median: 1000, last: 2000 }], violations: [], unsettled: 0, unexpectedEnds: [] },
  ...{ lostWithTheDead: 100, heldByTheDead: 10, repeated: 10, failures: {}, problems: {}, failedLooks: 0 },
  samples: samples(() => 100),
};

/** Five cycles of four kills; the third of each kills the agents in TypeScript. */
function samples(bytes: (n: number) => number, what = "gateway"): Sample[] {
  return Array.from({ length: 20 }, (_, n) => ({ [what]: bytes(n) }));
}

const KILLED = "TypeScript agents, killed";
/** Whole lives of what is killed third: the first begins with sample 3. */
const lifeAt = (n: number) => Math.floor((n - 3) / 4);

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
    const growing = samples((n) => n);
    expect(courseOf(growing, "gateway")).toEqual({ from: 5.5, to: 17.5 });
    expect(courseOf(growing.slice(0, 12), "gateway")).toEqual({ from: 5.5, to: 9.5 });
    expect(courseOf(growing.slice(0, 11), "gateway")).toBeUndefined();
  });

  test("compares the lives of what is killed when they are a cycle old", () => {
    expect(
      courseOf(
        samples((n) => n, KILLED),
        KILLED,
      ),
    ).toEqual({ from: 6, to: 14 });
    expect(courseOf(samples((n) => n, KILLED).slice(0, 12), KILLED)).toEqual({ from: 6, to: 10 });
    expect(courseOf(samples((n) => n, KILLED).slice(0, 11), KILLED)).toBeUndefined();
  });

  test("sees lives of which each takes more, but not what a life takes as it grows old, nor one that took more by chance", () => {
    expect(unmet({ samples: samples((n) => 100 + 10 * lifeAt(n), KILLED) })).toHaveLength(1);
    expect(unmet({ samples: samples((n) => 100 + 50 * ((n + 1) % 4), KILLED) })).toEqual([]);
    for (const heavy of [0, 1, 2, 3]) {
      expect(unmet({ samples: samples((n) => (lifeAt(n) === heavy ? 200 : 100), KILLED) })).toEqual([]);
    }
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
