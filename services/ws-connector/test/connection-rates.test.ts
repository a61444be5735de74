import { expect, test } from "@jest/globals";
import { CREDENTIAL_LIMITS } from "protocol/contract/limits.ts";
import type { Principal } from "window/principal.ts";
import { ConnectionRates } from "../src/connection-rates.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";

/** How many envelopes of as many connections of a principal pass at once. */
function passing(principal: Principal): number {
  const rates = {
    envelopes: new TokenBuckets(10, 20),
    bytes: new TokenBuckets(1000, 2000),
    principals: new PrincipalRates(20, 40),
    principalBytes: new PrincipalRates(2000, 2000),
  };
  const connections = Array.from({ length: 3000 }, () => new ConnectionRates(rates, principal));
  return connections.filter((connection) => connection.takeEnvelope() === null).length;
}

test("The connections of an issuer's agents share 25 times what those of a key do", () => {
  const times = passing("issuer:acme") / passing("key:k");
  expect(times).toBeGreaterThan(CREDENTIAL_LIMITS.issuerFactor - 1);
  expect(times).toBeLessThan(CREDENTIAL_LIMITS.issuerFactor + 1);
});
