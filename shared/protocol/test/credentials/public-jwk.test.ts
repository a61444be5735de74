import { expect, test } from "@jest/globals";
import { calculateJwkThumbprint } from "jose";
import { readPublicJwk, thumbprintOf } from "../../src/signing/credentials.ts";
import { newKeys, publicJwk } from "./issuing.ts";

test("the thumbprint of RFC 8037, appendix A.3", () => {
  expect(thumbprintOf("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "Ed25519")).toBe(
    "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
  );
});

test.each(["ed25519", "x25519"] as const)(
  "keys of %s have the thumbprints that another implementation gives them",
  async (curve) => {
    const keys = newKeys(curve);
    expect(keys.thumbprint).toBe(await calculateJwkThumbprint(await publicJwk(keys)));
    expect(readPublicJwk(await publicJwk(keys), curve === "ed25519" ? "Ed25519" : "X25519")).toBe(keys.x);
  },
);

/** In little-endian hex: all u whose points have an order that divides 8. Source: RFC 7748, section 6.1. */
const SMALL_ORDER = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

test.each(SMALL_ORDER)("a key for agreement of small order is refused: %s", (hex) => {
  const x = Buffer.from(hex, "hex").toString("base64url");
  expect(readPublicJwk({ kty: "OKP", crv: "X25519", x }, "X25519")).toBeUndefined();
});
