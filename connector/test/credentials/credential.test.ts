import { createHmac } from "node:crypto";
import { expect, test } from "@jest/globals";
import { CompactSign, calculateJwkThumbprint, compactVerify, importJWK } from "jose";
import { Issuers } from "../../src/credentials/issuers.ts";
import { issueCredential, issuerRecord, newIssuerKey } from "../../src/credentials/issuing.ts";
import { readPublicJwk, thumbprintOf } from "../../src/credentials/public-jwk.ts";
import { readCredential } from "../../src/credentials/read-credential.ts";
import { isTokenSignedBy } from "../../src/credentials/token-signature.ts";
import { importVerifyKey } from "../../src/keys.ts";
import { CREDENTIAL_LIMITS } from "../../src/limits.ts";
import { BOB, CLAIMS, HEADER, ISSUER, issued, NOW, newKeys, secondSpelling, tokenOf } from "./kit.ts";

const SEALING = await newKeys("X25519");
const DAY_SECONDS = 86_400;
const { iat, exp, cnf } = CLAIMS;
const sealingJwk = { kty: "OKP", crv: "X25519", x: SEALING.x };

test("A credential is read as its issuer wrote it", async () => {
  const token = issued({ enc: { jwk: sealingJwk }, aud: "relay.example", nbf: iat + 5 });
  expect(await readCredential(token)).toEqual({
    token,
    issuer: "acme",
    issuerKey: ISSUER.thumbprint,
    agent: "agent://acme.bob",
    keyId: `jkt-${BOB.thumbprint}`,
    key: { alg: "ed25519", key: expect.anything() },
    publicKey: BOB.x,
    sealingKey: SEALING.x,
    issuedAt: NOW,
    expiresAt: NOW + 3_600_000,
    notBefore: NOW + 5000,
    audience: ["relay.example"],
  });
});

test.each(["Ed25519", "EdDSA"])("Either name of the algorithm will do: %s", async (alg) => {
  expect(await readCredential(issued({}, { alg }))).toMatchObject({ agent: "agent://acme.bob", notBefore: NOW });
});

test("Claims that mean nothing here do not count, and a credential may be for several relays and 90 days", async () => {
  const read = await readCredential(
    issued({ jti: "7", nested: [{ a: 1 }], aud: ["a.example", "b.example:8443"], exp: iat + 90 * DAY_SECONDS }),
  );
  expect(read?.audience).toEqual(["a.example", "b.example:8443"]);
});

const { jwk } = cnf;
const BAD_CLAIMS: Readonly<Record<string, object>> = {
  "no issuer": { iss: undefined },
  "an issuer that is no name": { iss: "a b" },
  "an agent that is no agent id": { sub: "bob" },
  "several agents": { sub: ["agent://acme.bob"] },
  "no key": { cnf: undefined },
  "a key by its thumbprint only": { cnf: { jkt: BOB.thumbprint } },
  "a key of another type": { cnf: { jwk: { kty: "EC", crv: "P-256", x: BOB.x, y: BOB.x } } },
  "a key for agreement where one for signatures belongs": { cnf: { jwk: { ...jwk, crv: "X25519" } } },
  "a private key": { cnf: { jwk: { ...jwk, d: BOB.d } } },
  "a key that is too short": { cnf: { jwk: { ...jwk, x: BOB.x.slice(2) } } },
  "a key in a second spelling": { cnf: { jwk: { ...jwk, x: secondSpelling(BOB.x) } } },
  "a key with padding": { cnf: { jwk: { ...jwk, x: `${BOB.x}=` } } },
  "a key of small order": { cnf: { jwk: { ...jwk, x: Buffer.alloc(32).toString("base64url") } } },
  "a sealing key of another type": { enc: { jwk } },
  "a private sealing key": { enc: { jwk: { ...sealingJwk, d: SEALING.d } } },
  "no time of issue": { iat: undefined },
  "no end": { exp: undefined },
  "an end before its begin": { exp: iat },
  "a life of more than 90 days": { exp: iat + 90 * DAY_SECONDS + 1 },
  "fractions of a second": { exp: exp + 0.5 },
  "a time as text": { exp: String(exp) },
  "a time before 1970": { iat: -1, exp: 100 },
  "a time beyond all clocks": { iat: 1e18, exp: 1e18 + 100 },
  "a begin that is no time": { nbf: "now" },
  "an audience that is no name": { aud: [7] },
};

test.each(Object.entries(BAD_CLAIMS))("A credential with %s is malformed", async (_, claims) => {
  expect(await readCredential(issued(claims))).toBeUndefined();
});

const BAD_HEADERS: Readonly<Record<string, object>> = {
  "no algorithm": { alg: "none" },
  "another curve": { alg: "ES256" },
  "another type": { typ: "JWT" },
  "no type": { typ: undefined },
  "no key id": { kid: undefined },
  "a key id that is no text": { kid: 7 },
  "an address of keys": { jku: "https://keys.example" },
  "a key of its own": { jwk },
  "an address of certificates": { x5u: "https://keys.example" },
  "a certificate of its own": { x5c: [""] },
  "critical members": { crit: ["exp"] },
  "a member nobody knows": { x: 1 },
};

test.each(Object.entries(BAD_HEADERS))("A credential whose header has %s is malformed", async (_, header) => {
  expect(await readCredential(issued({}, header))).toBeUndefined();
});

const header = JSON.stringify(HEADER);
const claims = JSON.stringify(CLAIMS);
const TEXTS: Readonly<Record<string, () => unknown>> = {
  "no text": () => 7,
  "the empty text": () => "",
  "two parts": () => issued().split(".").slice(0, 2).join("."),
  "four parts": () => `${issued()}.AAAA`,
  "no signature": () => `${issued().split(".").slice(0, 2).join(".")}.`,
  "the public key as a secret": () => {
    const [head, body] = issued({}, { alg: "HS256" }).split(".");
    const sig = createHmac("sha256", Buffer.from(ISSUER.x, "base64url")).update(`${head}.${body}`).digest("base64url");
    return `${head}.${body}.${sig}`;
  },
  padding: () => `${issued()}=`,
  "a line break": () => `${issued()}\n`,
  "a signature in a second spelling": () => secondSpelling(issued()),
  "claims that are no object": () => tokenOf(header, "[]"),
  "claims that are not JSON": () => tokenOf(header, claims.slice(1)),
  "a byte order mark": () => tokenOf(header, `\ufeff${claims}`),
  "a member twice": () => tokenOf(header, claims.replace("{", '{"sub":"agent://eve",')),
  "a member twice, once with an escape": () => tokenOf(header, claims.replace("{", '{"s\\u0075b":"agent://eve",')),
  "a member twice in the header": () => tokenOf(header.replace("{", '{"alg":"none",'), claims),
  "a member twice below": () => tokenOf(header, claims.replace('"kty"', '"x":"","kty"')),
  "a member twice where nobody looks": () => tokenOf(header, claims.replace("{", '{"a":[{"b":1,"b":2}],')),
  "__proto__ twice": () => tokenOf(header, claims.replace("{", '{"__proto__":1,"__proto__":2,')),
  "bytes that are not UTF-8": () => {
    const [first, , last] = issued().split(".");
    return [first, Buffer.from(claims.replace("acme", "acm\xff"), "latin1").toString("base64url"), last].join(".");
  },
};

test.each(Object.entries(TEXTS))("A token with %s is malformed", async (_, text) => {
  expect(await readCredential(text())).toBeUndefined();
});

test("A token of the greatest size is read, one that is longer is not", async () => {
  const tokens = Array.from({ length: 1700 }, (_, pad) => issued({ pad: "x".repeat(pad) }));
  const fits = tokens.findLast(({ length }) => length <= CREDENTIAL_LIMITS.maxCharacters);
  const tooLong = tokens.find(({ length }) => length > CREDENTIAL_LIMITS.maxCharacters);
  expect((await readCredential(fits))?.agent).toBe("agent://acme.bob");
  expect(tooLong).toBeDefined();
  expect(await readCredential(tooLong)).toBeUndefined();
});

/** In little-endian hex. Source: RFC 7748, section 6.1. */
const SMALL_ORDER = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

test.each(SMALL_ORDER)("A sealing key of small order, or not reduced, is refused: %s", (hex) => {
  const x = Buffer.from(hex, "hex").toString("base64url");
  expect(readPublicJwk({ ...sealingJwk, x }, "X25519")).toBeUndefined();
  expect(readPublicJwk(sealingJwk, "X25519")).toBe(SEALING.x);
});

/** Examples of the standards. */
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

const ACME = await newIssuerKey("acme");
const ASKED = { agent: "agent://acme.bob", publicKey: BOB.x, days: 30 };

test("What an issuer signs holds by the record that others pin of it", async () => {
  const issuers = await Issuers.from([issuerRecord(ACME, ["agent://acme.*"])]);
  const credential = await issueCredential(ACME, ASKED, NOW);
  expect(await issuers.problemAt(credential, NOW)).toBeUndefined();
  expect(credential).toMatchObject({ keyId: `jkt-${BOB.thumbprint}`, issuedAt: NOW, sealingKey: undefined });
  expect(credential.expiresAt - NOW).toBe(30 * 86_400_000);
});

test("A credential says what was asked for, in the words of the protocol and no more", async () => {
  const asked = { ...ASKED, sealingKey: SEALING.x, audience: ["relay.example"] };
  const { token, issuerKey } = await issueCredential(ACME, asked, NOW + 999);
  const { protectedHeader, payload } = await compactVerify(token, { kty: "OKP", crv: "Ed25519", x: ACME.publicKey });
  expect(protectedHeader).toEqual({ alg: "Ed25519", typ: "relay-credential+jwt", kid: issuerKey });
  expect(JSON.parse(new TextDecoder().decode(payload))).toEqual({
    iss: "acme",
    sub: "agent://acme.bob",
    cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: BOB.x } },
    enc: { jwk: { kty: "OKP", crv: "X25519", x: SEALING.x } },
    aud: ["relay.example"],
    iat: NOW / 1000,
    exp: NOW / 1000 + 30 * 86_400,
  });
});

test.each([
  ["no agent id", { agent: "bob" }],
  ["a key of small order", { publicKey: "A".repeat(43) }],
  ["a sealing key of small order", { sealingKey: "A".repeat(43) }],
  ["a life of more than 90 days", { days: 91 }],
  ["no life", { days: 0 }],
  ["more than a token holds", { audience: Array.from({ length: 200 }, () => "relay.example") }],
])("Nothing malformed is issued: %s", async (_, changes) => {
  await expect(issueCredential(ACME, { ...ASKED, ...changes }, NOW)).rejects.toBeInstanceOf(TypeError);
});
