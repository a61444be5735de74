import { expect, test } from "@jest/globals";
import { IssuedTokens } from "../../src/verification/envelope-verifier.ts";

/** So many fill half of what is remembered. */
const HALF = 7500;

const tokenOf = (n: number) => ({ token: String(n).padEnd(1000, "t"), signature: `signature-${n}` });

/** Those with these numbers were presented, in this order. */
function presented(from: number, to: number): IssuedTokens {
  const issued = new IssuedTokens();
  for (let n = from; n < to; n += 1) issued.add(tokenOf(n));
  return issued;
}

test("10,000 tokens of 740 characters are remembered, whatever came before them", () => {
  const common = (n: number) => ({ token: String(n).padEnd(740, "t"), signature: `signature-${n}` });
  const issued = presented(1_000_000, 1_000_000 + 3 * HALF);
  for (let n = 0; n < 10_000; n += 1) issued.add(common(n));
  expect(Array.from({ length: 10_000 }, (_, n) => issued.has(common(n)))).not.toContain(false);
});

test("of more tokens the first are forgotten, so that they never take more than twice what is sure to be remembered", () => {
  expect(presented(0, 2 * HALF + 1).has(tokenOf(0))).toBe(true);
  const issued = presented(0, 2 * HALF + 2);
  expect([HALF, HALF + 1].map((n) => issued.has(tokenOf(n)))).toEqual([false, true]);
});

test("one that is presented again is remembered for as long as one that is new", () => {
  const issued = presented(0, HALF + 1);
  expect(issued.has(tokenOf(0))).toBe(true);
  for (let n = HALF + 1; n < 2 * HALF + 1; n += 1) issued.add(tokenOf(n));
  expect([issued.has(tokenOf(0)), issued.has(tokenOf(1))]).toEqual([true, false]);
});

test("another token under the signature of one that is remembered is not, however long ago that was presented", () => {
  const forged = { ...tokenOf(0), token: tokenOf(1).token };
  for (const since of [1, HALF + 1]) {
    const issued = presented(0, since);
    expect([issued.has(forged), issued.has(tokenOf(0)), issued.has(forged)]).toEqual([false, true, false]);
  }
});

test("one token counts once, however often it was verified", () => {
  const issued = presented(0, 2);
  for (let n = 0; n < 3 * HALF; n += 1) issued.add(tokenOf(1));
  expect(issued.has(tokenOf(0))).toBe(true);
});
