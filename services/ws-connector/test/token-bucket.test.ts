import { describe, expect, test } from "@jest/globals";
import { TokenBucket } from "../src/token-bucket.ts";

function takeMany(bucket: TokenBucket, count: number, now: number): number[] {
  return Array.from({ length: count }, () => bucket.take(now));
}

describe("a bucket of 10 a second and 50 at once", () => {
  const full = () => new TokenBucket(10, 50, 1000);

  test("gives 50 at once, then says how long the next one takes", () => {
    const bucket = full();
    expect(takeMany(bucket, 50, 1000)).toEqual(Array(50).fill(0));
    expect(bucket.take(1000)).toBe(100);
    expect(bucket.take(1040)).toBe(60);
  });

  test.each([1000, 1013, 1040, 1097.5])(
    "has a token when the wait that it named at %d ms is over, to a millisecond",
    (now) => {
      const bucket = full();
      takeMany(bucket, 50, 1000);
      const wait = bucket.take(now);
      expect(wait).toBeGreaterThan(0);
      expect(bucket.take(now + wait - 2)).toBeGreaterThan(0);
      expect(bucket.take(now + wait + 1)).toBe(0);
      expect(bucket.take(now + wait + 1)).toBeGreaterThan(90);
    },
  );

  test("is not emptied by those it refuses", () => {
    const bucket = full();
    takeMany(bucket, 500, 1000);
    expect(takeMany(bucket, 10, 2000)).toEqual(Array(10).fill(0));
    expect(bucket.take(2000)).toBe(100);
  });

  test("never holds more than 50, however long it waits", () => {
    const bucket = full();
    bucket.take(1000);
    expect(takeMany(bucket, 50, 1e9)).toEqual(Array(50).fill(0));
    expect(bucket.take(1e9)).toBeGreaterThan(0);
  });

  test("lets 10 a second through over a long time", () => {
    const bucket = full();
    let taken = 0;
    for (let now = 1000; now < 61_000; now += 7) if (bucket.take(now) === 0) taken += 1;
    expect(taken).toBeGreaterThanOrEqual(649);
    expect(taken).toBeLessThanOrEqual(650);
  });
});

test("A bucket of 0 a second knows no limit", () => {
  expect(takeMany(new TokenBucket(0, 0, 0), 1000, 0)).toEqual(Array(1000).fill(0));
});
