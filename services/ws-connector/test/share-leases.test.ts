import { expect, test } from "@jest/globals";
import type { PrincipalShares } from "window/principal-shares.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { ShareLeases } from "../src/share-leases.ts";

const KEY = "key:k";
type Lease = PrincipalShares["lease"];

/** Rates of 10 a second and 10 at once, and leases of them. */
function leasing(lease: Lease) {
  const rates = { principals: new PrincipalRates(10, 10), principalBytes: new PrincipalRates(10, 10) };
  return { ...rates, leases: new ShareLeases({ lease }, rates) };
}

const takeMany = (rates: PrincipalRates, count: number) => {
  for (let n = 0; n < count; n += 1) rates.take(KEY, performance.now());
};

test("Each of the two limits of a key is leased by itself, where it is above half of it", async () => {
  const asked: unknown[] = [];
  const { principals, principalBytes, leases } = leasing(async (...call) => {
    asked.push(call);
    return new Map();
  });
  takeMany(principals, 9);
  takeMany(principalBytes, 4);
  await leases.renew();
  expect(asked).toEqual([
    ["key_envelopes", [KEY]],
    ["key_bytes", []],
  ]);
});

test("A renewal without an answer leaves the pod's own limit in force, whatever the one before it said", async () => {
  let answer = new Map([[KEY, 5] as const]);
  const { principals, leases } = leasing(async () => answer);
  const now = performance.now() + 60_000;
  takeMany(principals, 9);
  await leases.renew();
  principals.take(KEY, now, 2);
  expect(principals.wait(KEY, now)).toBeGreaterThan(0);
  answer = new Map();
  await leases.renew();
  const later = now + 60_000;
  principals.take(KEY, later, 9);
  expect(principals.wait(KEY, later)).toBe(0);
});
