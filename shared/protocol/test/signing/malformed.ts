import { createHmac } from "node:crypto";
import { UnsecuredJWT } from "jose";
import { AGENT, CLAIMS, HEADER, ISSUER, issuedAsWritten } from "./issuing.ts";

/** Tokens that are no credentials, though ISSUER signed most of them; each under what is wrong with it. */

const DAY_SECONDS = 86_400;
const { iat, exp, cnf } = CLAIMS;
const { jwk } = cnf;
const header = JSON.stringify(HEADER);
const claims = JSON.stringify(CLAIMS);

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

const BAD_HEADERS: Readonly<Record<string, object>> = {
  "no algorithm": { alg: "none" },
  "the algorithm of a shared secret": { alg: "HS256" },
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

const BAD_TEXTS: Readonly<Record<string, () => unknown>> = {
  "no text": () => 7,
  "the empty text": () => "",
  "a code of HS256 under the issuer's public key": () => authenticated("HS256", "sha256"),
  "a code of HS512 under the issuer's public key, as long as a signature": () => authenticated("HS512", "sha512"),
  "more than 2048 characters": () => issuedAsWritten(header, JSON.stringify({ ...CLAIMS, pad: "x".repeat(2048) })),
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

/** With what anybody can make who takes the public key for a secret. */
function authenticated(alg: string, hash: string): string {
  const [head, body] = issuedAsWritten(JSON.stringify({ ...HEADER, alg }), claims).split(".");
  const code = createHmac(hash, Buffer.from(ISSUER.x, "base64url")).update(`${head}.${body}`);
  return `${head}.${body}.${code.digest("base64url")}`;
}

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

const changed = (name: string, changes: Readonly<Record<string, object>>, make: (change: object) => string) =>
  Object.entries(changes).map(([what, change]) => [`${name} with ${what}`, make(change)] as const);

export const MALFORMED: Readonly<Record<string, unknown>> = Object.fromEntries([
  ...changed("claims", BAD_CLAIMS, (change) => issuedAsWritten(header, JSON.stringify({ ...CLAIMS, ...change }))),
  ...changed("a header", BAD_HEADERS, (change) => issuedAsWritten(JSON.stringify({ ...HEADER, ...change }), claims)),
  ...Object.entries(BAD_TEXTS).map(([what, text]) => [`a token with ${what}`, text()] as const),
]);
