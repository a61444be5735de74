import { describe, expect, test } from "@jest/globals";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";

/** One bucket, as its owner keeps it: takes a token if there is one, else says how long the next one takes. */
function bucketOf(buckets: TokenBuckets): (now: number) => number {
  let fullAt = 0;
  return (now) => {
    const wait = buckets.wait(fullAt, now);
    if (wait === 0) fullAt = buckets.take(fullAt, now);
    return wait;
  };
}

function takeMany(take: (now: number) => number, count: number, now: number): number[] {
  return Array.from({ length: count }, () => take(now));
}

describe("a bucket of 10 a second and 50 at once", () => {
  const full = () => bucketOf(new TokenBuckets(10, 50));

  test("gives 50 at once, then says how long the next one takes", () => {
    const take = full();
    expect(takeMany(take, 50, 1000)).toEqual(Array(50).fill(0));
    expect(take(1000)).toBe(100);
    expect(take(1040)).toBe(60);
  });

  test.each([1000, 1013, 1040, 1097.5])(
    "has a token when the wait that it named at %d ms is over, to a millisecond",
    (now) => {
      const take = full();
      takeMany(take, 50, 1000);
      const wait = take(now);
      expect(wait).toBeGreaterThan(0);
      expect(take(now + wait - 2)).toBeGreaterThan(0);
      expect(take(now + wait + 1)).toBe(0);
      expect(take(now + wait + 1)).toBeGreaterThan(90);
    },
  );

  test("is not emptied by those it refuses", () => {
    const take = full();
    takeMany(take, 500, 1000);
    expect(takeMany(take, 10, 2000)).toEqual(Array(10).fill(0));
    expect(take(2000)).toBe(100);
  });

  test("never holds more than 50, however long it waits", () => {
    const take = full();
    take(1000);
    expect(takeMany(take, 50, 1e9)).toEqual(Array(50).fill(0));
    expect(take(1e9)).toBeGreaterThan(0);
  });

  test("lets 10 a second through over a long time", () => {
    const take = full();
    let taken = 0;
    for (let now = 1000; now < 61_000; now += 7) if (take(now) === 0) taken += 1;
    expect(taken).toBeGreaterThanOrEqual(649);
    expect(taken).toBeLessThanOrEqual(650);
  });
});

test("A bucket of 0 a second knows no limit", () => {
  expect(takeMany(bucketOf(new TokenBuckets(0, 0)), 1000, 0)).toEqual(Array(1000).fill(0));
});

test("Tokens may be taken in advance, and the wait for the next stays about a second", () => {
  const buckets = new TokenBuckets(10, 50);
  let fullAt = 0;
  for (let n = 0; n < 52; n += 1) fullAt = buckets.take(fullAt, 1000);
  expect(buckets.wait(fullAt, 1000)).toBe(300);
  fullAt = buckets.take(fullAt, 1000, 1000);
  expect(buckets.wait(fullAt, 1000)).toBe(1100);
});

test("Rates of principals are forgotten when their buckets are full again, and they have sent nothing for a minute", () => {
  const rates = new PrincipalRates(10, 50);
  rates.take("key:a", 1000);
  rates.take("key:b", 1500);
  rates.endMinute(1250);
  expect(rates.size).toBe(2);
  rates.endMinute(1250);
  expect(rates.size).toBe(1);
});
