import { expect, test } from "@jest/globals";
import { verify } from "../../src/signing/algorithms.ts";
import { readCredential } from "../../src/signing/credentials.ts";

/** Tokens of the RFCs: what is signed is verified as they have it, and none of them is a credential. */

/** RFC 8037, appendix A. */
const PUBLIC_KEY = Buffer.from("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "base64url");
const SIGNED = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
const SIGNATURE = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

/** RFC 7515, appendix A. */
const PAYLOAD = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

test("RFC 8037, A.4 and A.5: the signature is verified, and holds for no other text", () => {
  const key = { alg: "ed25519", publicKey: PUBLIC_KEY } as const;
  expect(verify(key, SIGNED, SIGNATURE)).toBe(true);
  expect(verify(key, SIGNED.replace("RXhh", "RXhi"), SIGNATURE)).toBe(false);
});

test.each([
  ["RFC 8037, A.4", `${SIGNED}.${SIGNATURE}`],
  [
    "RFC 7515, A.1, HS256",
    `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${PAYLOAD}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`,
  ],
  [
    "RFC 7515, A.3, ES256",
    `eyJhbGciOiJFUzI1NiJ9.${PAYLOAD}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`,
  ],
  ["RFC 7515, A.5, unsecured", `eyJhbGciOiJub25lIn0.${PAYLOAD}.`],
])("the token of %s is no credential", (_, token) => {
  expect(readCredential(token)).toBeUndefined();
});
