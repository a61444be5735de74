import { createHmac } from "node:crypto";
import { expect, test } from "@jest/globals";
import { readPublicJwk } from "../../src/credentials/public-jwk.ts";
import { readCredential } from "../../src/credentials/read-credential.ts";
import { CREDENTIAL_LIMITS } from "../../src/limits.ts";
import { BOB, CLAIMS, HEADER, ISSUER, issued, NOW, newKeys, secondSpelling, tokenOf } from "./kit.ts";

const SEALING = await newKeys("X25519");
const DAY_SECONDS = 86_400;
const { iat, exp, cnf } = CLAIMS;
const sealingJwk = { kty: "OKP", crv: "X25519", x: SEALING.x };

test("a credential is read as its issuer wrote it", async () => {
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

test.each(["Ed25519", "EdDSA"])("either name of the algorithm will do: %s", async (alg) => {
  expect(await readCredential(issued({}, { alg }))).toMatchObject({ agent: "agent://acme.bob", notBefore: NOW });
});

test("claims that mean nothing here do not count, and a credential may be for several relays and 90 days", async () => {
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

test.each(Object.entries(BAD_CLAIMS))("a credential with %s is malformed", async (_, claims) => {
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

test.each(Object.entries(BAD_HEADERS))("a credential whose header has %s is malformed", async (_, header) => {
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

test.each(Object.entries(TEXTS))("a token with %s is malformed", async (_, text) => {
  expect(await readCredential(text())).toBeUndefined();
});

test("a token of the greatest size is read, one that is longer is not", async () => {
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

test.each(SMALL_ORDER)("a sealing key of small order, or not reduced, is refused: %s", (hex) => {
  const x = Buffer.from(hex, "hex").toString("base64url");
  expect(readPublicJwk({ ...sealingJwk, x }, "X25519")).toBeUndefined();
  expect(readPublicJwk(sealingJwk, "X25519")).toBe(SEALING.x);
});
