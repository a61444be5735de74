import { describe, expect, test } from "@jest/globals";
import { movesOf, primariesOf } from "../../deploy/redis/partition-plan.ts";
import { COMPILE_CACHE, type Ended, runProgram } from "../support/pod-process.ts";

describe("a plan of partitions", () => {
  test.each([1, 3, 5, 7, 24])("over %i primaries covers every slot once, as redis-cli divides them", (count) => {
    const primaries = primariesOf(12, count);
    expect(primaries.map(({ first }) => first)).toEqual([0, ...primaries.slice(0, -1).map(({ last }) => last + 1)]);
    expect(primaries.at(-1)?.last).toBe(16_383);
    expect(primaries.flatMap(({ partitions }) => partitions).sort((a, b) => a - b)).toEqual([...Array(12).keys()]);
  });

  test("has the ranges that redis-cli gives three primaries", () => {
    expect(primariesOf(12, 3).map(({ first, last }) => [first, last])).toEqual([
      [0, 5460],
      [5461, 10_922],
      [10_923, 16_383],
    ]);
  });

  test.each([
    [12, 3, 0],
    [12, 5, 0],
    [16, 8, 4],
    [4, 8, 0],
  ])(
    "of %i partitions over %i primaries moves %i slots, and none has two more than another then",
    (partitions, count, most) => {
      const primaries = primariesOf(partitions, count);
      const moves = movesOf(primaries);
      const counts = primaries.map(({ partitions: own }) => own.length);
      for (const { partition, from, to } of moves) {
        expect(primaries[from]?.partitions).toContain(partition);
        counts[from] = (counts[from] as number) - 1;
        counts[to] = (counts[to] as number) + 1;
      }
      expect(moves).toHaveLength(most);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThan(2);
    },
  );
});

describe("npm run partitions", () => {
  test("prints where each partition of the setting lies", async () => {
    const { code, stdout } = await run(["plan", "3"], { RELAY_PARTITIONS: "12" });
    expect(code).toBe(0);
    for (const { first, last } of primariesOf(12, 3)) expect(stdout).toContain(`${first}-${last}`);
  });

  test("names the setting where there is none, and says how it is used when asked", async () => {
    expect(await run(["plan", "3"])).toMatchObject({ code: 0, stdout: expect.stringContaining("RELAY_PARTITIONS=12") });
    expect((await run(["plan", "3"], { RELAY_PARTITIONS: "24" })).stdout).not.toContain("RELAY_PARTITIONS=12");
    expect(await run(["--help"])).toMatchObject({ code: 0, stdout: expect.stringContaining("plan") });
  });

  test("refuses an invalid command line and invalid settings", async () => {
    for (const args of [[], ["plan"], ["plan", "0"], ["plan", "x"], ["plan", "3", "4"], ["moves", "3"], ["--all"]]) {
      expect(await run(args)).toMatchObject({ code: 2, stdout: "" });
    }
    expect((await run(["plan", "3"], { RELAY_PARTITIONS: "25" })).code).toBe(78);
  });
});

function run(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const program = ["deploy/redis/partitions.ts", ...args];
  return runProgram(process.execPath, program, { env: { ...COMPILE_CACHE, ...env } });
}
