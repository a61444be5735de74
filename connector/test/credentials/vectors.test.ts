import { expect, test } from "@jest/globals";
import { CompactSign, calculateJwkThumbprint, compactVerify, importJWK } from "jose";
import { thumbprintOf } from "../../src/credentials/public-jwk.ts";
import { readCredential } from "../../src/credentials/read-credential.ts";
import { isTokenSignedBy } from "../../src/credentials/token-signature.ts";
import { importVerifyKey } from "../../src/keys.ts";

/** RFC 8037, appendix A. */
const X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const D = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
const SIGNED =
  "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

const key = await importVerifyKey({ keyId: "rfc-8037", alg: "ed25519", publicKey: X });

/** RFC 7515, appendix A. */
const PAYLOAD = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
const EXAMPLES = [
  {
    name: "A.1, HS256",
    token: `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${PAYLOAD}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`,
    jwk: {
      kty: "oct",
      k: "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
    },
  },
  {
    name: "A.3, ES256",
    token: `eyJhbGciOiJFUzI1NiJ9.${PAYLOAD}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`,
    jwk: {
      kty: "EC",
      crv: "P-256",
      x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
      y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    },
  },
];

test.each(EXAMPLES)(
  "the library verifies RFC 7515, $name, and no credential is of that kind",
  async ({ token, jwk }) => {
    const { payload } = await compactVerify(token, jwk);
    expect(new TextDecoder().decode(payload)).toContain('"iss":"joe"');
    expect(await isTokenSignedBy(key, token)).toBe(false);
    expect(await readCredential(token)).toBeUndefined();
  },
);

test("RFC 7515, A.5, unsecured, is signed by nobody", async () => {
  const token = `eyJhbGciOiJub25lIn0.${PAYLOAD}.`;
  expect(await isTokenSignedBy(key, token)).toBe(false);
  expect(await readCredential(token)).toBeUndefined();
});

test("RFC 8037, A.4 and A.5: the signature is made and verified, and holds for no other text", async () => {
  const privateKey = await importJWK({ kty: "OKP", crv: "Ed25519", x: X, d: D }, "EdDSA");
  const payload = new TextEncoder().encode("Example of Ed25519 signing");
  expect(await new CompactSign(payload).setProtectedHeader({ alg: "EdDSA" }).sign(privateKey)).toBe(SIGNED);
  expect(await isTokenSignedBy(key, SIGNED)).toBe(true);
  expect(await isTokenSignedBy(key, SIGNED.replace("RXhh", "RXhi"))).toBe(false);
});

test("RFC 8037, A.3: the thumbprint of an Ed25519 key", async () => {
  expect(await thumbprintOf(X, "Ed25519")).toBe("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
});

test("RFC 7638, 3.1: the thumbprint of an RSA key", async () => {
  const n =
    "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
  const jwk = { kty: "RSA", n, e: "AQAB", alg: "RS256", kid: "2011-04-29" };
  expect(await calculateJwkThumbprint(jwk)).toBe("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
});
