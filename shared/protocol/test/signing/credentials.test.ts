import { expect, test } from "@jest/globals";
import { calculateJwkThumbprint, compactVerify } from "jose";
import { verify } from "../../src/signing/algorithms.ts";
import { readCredential, readPublicJwk, thumbprintOf } from "../../src/signing/credentials.ts";
import { CREDENTIAL_LIMITS } from "../../src/wire/limits.ts";
import { AGENT, CLAIMS, HEADER, ISSUER, issued, issuedAsWritten, NOW, newKeys, publicJwk } from "./issuing.ts";
import { MALFORMED } from "./malformed.ts";

const SEALING = newKeys("x25519");
const DAY_SECONDS = 86_400;
const { iat } = CLAIMS;
const header = JSON.stringify(HEADER);
const claims = JSON.stringify(CLAIMS);

test("a credential is read as its issuer wrote it", async () => {
  const token = await issued({ enc: { jwk: await publicJwk(SEALING) }, aud: "relay.example", nbf: iat + 5 });
  expect(readCredential(token)).toEqual({
    token,
    signed: token.slice(0, token.lastIndexOf(".")),
    signature: token.slice(token.lastIndexOf(".") + 1),
    issuer: "acme",
    issuerKey: await calculateJwkThumbprint(await publicJwk(ISSUER)),
    agent: "agent://acme.bob",
    keyId: `jkt-${await calculateJwkThumbprint(await publicJwk(AGENT))}`,
    publicKey: AGENT.x,
    sealingKey: SEALING.x,
    issuedAt: NOW,
    expiresAt: NOW + 3_600_000,
    notBefore: NOW + 5000,
    audience: ["relay.example"],
  });
});

test.each(["Ed25519", "EdDSA"])("what is signed is what another implementation verifies, as alg %s", async (alg) => {
  const token = await issued({}, { alg });
  const { signed = "", signature = "" } = readCredential(token) ?? {};
  const { payload } = await compactVerify(token, ISSUER.publicKey);
  expect(JSON.parse(Buffer.from(payload).toString())).toEqual(CLAIMS);
  const publicKey = Buffer.from(ISSUER.x, "base64url");
  expect(verify({ alg: "ed25519", publicKey }, signed, signature)).toBe(true);
  expect(verify({ alg: "ed25519", publicKey }, `${signed}A`, signature)).toBe(false);
});

test("claims that mean nothing to a relay do not count", async () => {
  expect(readCredential(await issued({ jti: "7", name: "Bob", nested: [{ a: 1 }] }))?.agent).toBe("agent://acme.bob");
});

test("a credential may be for several relays, and for as many days as are allowed", async () => {
  const days = CREDENTIAL_LIMITS.maxLifeMs / (DAY_SECONDS * 1000);
  const read = readCredential(await issued({ aud: ["a.example", "b.example:8443"], exp: iat + days * DAY_SECONDS }));
  expect(read?.audience).toEqual(["a.example", "b.example:8443"]);
});

test.each(Object.entries(MALFORMED))("%s makes a credential malformed", (_, token) => {
  expect(readCredential(token)).toBeUndefined();
});

test("a token of the greatest size is read, a longer one is not", async () => {
  const lengthWith = async (pad: number) => (await issued({ pad: "x".repeat(pad) })).length;
  const pad = Math.floor(((CREDENTIAL_LIMITS.maxCharacters - (await lengthWith(0))) * 3) / 4);
  const fitting = [pad, pad - 1, pad - 2, pad - 3, pad - 4];
  const lengths = await Promise.all(fitting.map(lengthWith));
  const longest = fitting[lengths.findIndex((length) => length <= CREDENTIAL_LIMITS.maxCharacters)] as number;
  expect(readCredential(await issued({ pad: "x".repeat(longest) }))).toBeDefined();
  expect(readCredential(await issued({ pad: "x".repeat(longest + 4) }))).toBeUndefined();
});

/** In a service it is about one; what Jest runs reads several times slower, and checks as fast. */
const MOST_CHECKS = 8;

/** Claims beside those that count, which make a valid token of the greatest size. */
const EXPENSIVE: Readonly<Record<string, (n: number) => string>> = {
  "arrays in each other": (n) => `${"[".repeat(n)}${"]".repeat(n)}`,
  "objects in each other": (n) => `${'{"":'.repeat(n)}0${"}".repeat(n)}`,
  "many members": (n) => `{${Array.from({ length: n }, (_, i) => `"${i.toString(36)}":0`)}}`,
  "many escaped names": (n) => `{${Array.from({ length: n }, (_, i) => `"\\n${i.toString(36)}":0`)}}`,
  "many numbers": (n) => `[${Array(n).fill(0)}]`,
  "many backslashes": (n) => `"${"\\\\".repeat(n)}"`,
};

test.each(Object.entries(EXPENSIVE))(
  "a token of the greatest size with %s costs no more than a few checks of a signature",
  (_, pad) => {
    const tokenOf = (n: number) => issuedAsWritten(header, claims.replace("{", `{"pad": ${pad(n)},`));
    let n = 1;
    while (tokenOf(n + 1).length <= CREDENTIAL_LIMITS.maxCharacters) n += 1;
    const token = tokenOf(n);
    const { signed, signature } = readCredential(token) as NonNullable<ReturnType<typeof readCredential>>;
    const publicKey = Buffer.from(ISSUER.x, "base64url");
    const [reading, checking] = fastestOf(
      () => readCredential(token),
      () => verify({ alg: "ed25519", publicKey }, signed, signature),
    );
    expect(reading / checking).toBeLessThan(MOST_CHECKS);
  },
);

/** Of both the time of the fastest run, in turn, so that whatever else runs on the machine meets both alike. */
function fastestOf(one: () => unknown, other: () => unknown): readonly [number, number] {
  const fastest: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 100; round += 1) {
    for (const index of [0, 1] as const) {
      const begin = performance.now();
      (index === 0 ? one : other)();
      fastest[index] = Math.min(fastest[index], performance.now() - begin);
    }
  }
  return fastest;
}

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
