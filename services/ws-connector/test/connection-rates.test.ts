import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CREDENTIAL_LIMITS } from "protocol/contract/limits.ts";
import { type Principal, rateHoldersOf } from "window/principal.ts";
import { ConnectionRates, type PodRates } from "../src/connection-rates.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";

const KEY_BURST = 40;
const KEY_BYTES = 2000;

// Nothing comes back to a bucket while a busy machine counts.
beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function podRates(): PodRates {
  return {
    envelopes: new TokenBuckets(10, 20),
    bytes: new TokenBuckets(1000, 2000),
    principals: new PrincipalRates(20, KEY_BURST),
    principalBytes: new PrincipalRates(2000, KEY_BYTES),
  };
}

/** Of how many of so many new connections of a principal one envelope each passes at once. */
function passing(
  principal: Principal,
  agentOf: (n: number) => string,
  { count = 3000, rates = podRates() } = {},
): number {
  const connect = (n: number) => new ConnectionRates(rates, rateHoldersOf(principal, agentOf(n)));
  const connections = Array.from({ length: count }, (_, n) => connect(n));
  return connections.filter((connection) => connection.takeEnvelope() === null).length;
}

const crowd = (n: number) => `agent://crowd-${n}`;
const eve = () => "agent://eve";

test("The connections of an issuer's agents share 25 times what those of a key do", () => {
  const times = passing("issuer:acme", crowd) / passing("key:k", crowd);
  expect(times).toBeGreaterThan(CREDENTIAL_LIMITS.issuerFactor - 1);
  expect(times).toBeLessThan(CREDENTIAL_LIMITS.issuerFactor + 1);
});

describe("One agent of an issuer", () => {
  test("has over all its connections what those of a key have, and leaves the others of the issuer theirs", () => {
    const rates = podRates();
    const own = passing("issuer:acme", eve, { count: 10 * KEY_BURST, rates });
    expect(own).toBe(KEY_BURST);
    const one = new ConnectionRates(rates, rateHoldersOf("issuer:acme", "agent://other"));
    expect([one.waitForBytes(), one.takeEnvelope()]).toEqual([null, null]);
  });

  test("has the bytes of a key, too: on its next connection it waits for what it sent on the last", () => {
    const rates = podRates();
    const connect = (agent: string) => new ConnectionRates(rates, rateHoldersOf("issuer:acme", agent));
    connect("agent://eve").takeBytes(2 * KEY_BYTES);
    expect(connect("agent://eve").waitForBytes()).toMatchObject({ limit: "key_bytes" });
    expect(connect("agent://other").waitForBytes()).toBeNull();
  });

  test("is forgotten when its bucket is full again, as its issuer is", () => {
    const rates = podRates();
    passing("issuer:acme", eve, { rates });
    expect(rates.principals.size).toBe(2);
    rates.principals.forgetFull(performance.now() + 3_600_000);
    expect(rates.principals.size).toBe(0);
  });
});
