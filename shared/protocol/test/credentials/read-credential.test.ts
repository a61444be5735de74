import { expect, test } from "@jest/globals";
import { calculateJwkThumbprint, compactVerify, UnsecuredJWT } from "jose";
import { CREDENTIAL_LIMITS } from "../../src/contract/limits.ts";
import { readCredential } from "../../src/credentials/read-credential.ts";
import { verify } from "../../src/signing/algorithms.ts";
import { AGENT, CLAIMS, HEADER, ISSUER, issued, issuedAsWritten, NOW, newKeys, publicJwk } from "./issuing.ts";

const SEALING = newKeys("x25519");
const DAY_SECONDS = 86_400;
const { iat, exp, cnf } = CLAIMS;

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
    publicKey: Buffer.from(AGENT.x, "base64url"),
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

const jwk = cnf.jwk;
const BAD_CLAIMS: Readonly<Record<string, object>> = {
  "no issuer": { iss: undefined },
  "an issuer that is no name": { iss: "a b" },
  "an agent that is no agent id": { sub: "bob" },
  "several agents": { sub: ["agent://acme.bob"] },
  "no key": { cnf: undefined },
  "a key by its thumbprint only": { cnf: { jkt: AGENT.thumbprint } },
  "a key of another type": { cnf: { jwk: { kty: "EC", crv: "P-256", x: AGENT.x, y: AGENT.x } } },
  "a key for agreement where one for signatures belongs": { cnf: { jwk: { ...jwk, crv: "X25519" } } },
  "a private key": { cnf: { jwk: { ...jwk, d: AGENT.x } } },
  "a key that is too short": { cnf: { jwk: { ...jwk, x: AGENT.x.slice(2) } } },
  "a key in a second spelling": { cnf: { jwk: { ...jwk, x: `${AGENT.x.slice(0, -1)}${nextOf(AGENT.x.at(-1))}` } } },
  "a key with padding": { cnf: { jwk: { ...jwk, x: `${AGENT.x}=` } } },
  "a key of small order": { cnf: { jwk: { ...jwk, x: Buffer.alloc(32).toString("base64url") } } },
  "a sealing key of another type": { enc: { jwk } },
  "a sealing key of small order": { enc: { jwk: { kty: "OKP", crv: "X25519", x: littleEndian(1) } } },
  "a sealing key that is not reduced": { enc: { jwk: { kty: "OKP", crv: "X25519", x: `${"_".repeat(42)}8` } } },
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
  expect(
    readCredential(issuedAsWritten(JSON.stringify(HEADER), JSON.stringify({ ...CLAIMS, ...claims }))),
  ).toBeUndefined();
});

const BAD_HEADERS: Readonly<Record<string, object>> = {
  "no algorithm": { alg: "none" },
  "the public key as a secret": { alg: "HS256" },
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

test.each(Object.entries(BAD_HEADERS))("a credential whose header has %s is malformed", (_, header) => {
  expect(
    readCredential(issuedAsWritten(JSON.stringify({ ...HEADER, ...header }), JSON.stringify(CLAIMS))),
  ).toBeUndefined();
});

const header = JSON.stringify(HEADER);
const claims = JSON.stringify(CLAIMS);
const TEXTS: Readonly<Record<string, () => unknown>> = {
  "no text": () => 7,
  "the empty text": () => "",
  "two parts": () => issuedAsWritten(header, claims).split(".").slice(0, 2).join("."),
  "no signature": () => new UnsecuredJWT(CLAIMS).encode(),
  "four parts": () => `${issuedAsWritten(header, claims)}.AAAA`,
  padding: () => `${issuedAsWritten(header, claims)}=`,
  "a line break": () => `${issuedAsWritten(header, claims)}\n`,
  "a signature in a second spelling": () => {
    const token = issuedAsWritten(header, claims);
    return `${token.slice(0, -1)}${nextOf(token.at(-1))}`;
  },
  "claims that are no object": () => issuedAsWritten(header, "[]"),
  "claims that are not JSON": () => issuedAsWritten(header, claims.slice(1)),
  "a byte order mark": () => issuedAsWritten(header, `\ufeff${claims}`),
  "a member twice": () => issuedAsWritten(header, claims.replace("{", '{"sub":"agent://eve",')),
  "a member twice, once with an escape": () =>
    issuedAsWritten(header, claims.replace("{", '{"s\\u0075b":"agent://eve",')),
  "a member twice in the header": () => issuedAsWritten(header.replace("{", '{"alg":"none",'), claims),
  "a member twice below": () => issuedAsWritten(header, claims.replace('"kty"', '"x":"","kty"')),
  "a member twice where nobody looks": () => issuedAsWritten(header, claims.replace("{", '{"a":[{"b":1,"b":2}],')),
  "bytes that are not UTF-8": () => {
    const [first, , last] = issuedAsWritten(header, claims).split(".");
    return [first, Buffer.from(claims.replace("acme", "acm\xff"), "latin1").toString("base64url"), last].join(".");
  },
};

test.each(Object.entries(TEXTS))("a token with %s is malformed", (_, text) => {
  expect(readCredential(text())).toBeUndefined();
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

test("the most expensive token costs less than a signature", () => {
  const deep = CREDENTIAL_LIMITS.maxCharacters / 2;
  const token = issuedAsWritten(header, `${"[".repeat(deep)}`);
  const begin = process.hrtime.bigint();
  for (let n = 0; n < 100; n += 1) readCredential(token);
  expect(Number(process.hrtime.bigint() - begin) / 100 / 1e6).toBeLessThan(2);
});

/** Another last character, whose unused bits are not zero. */
function nextOf(character: string | undefined): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return alphabet[alphabet.indexOf(character ?? "") + 1] as string;
}

function littleEndian(value: number): string {
  const bytes = Buffer.alloc(32);
  bytes[0] = value;
  return bytes.toString("base64url");
}
