import { expect, test } from "@jest/globals";
import { compactVerify } from "jose";
import { Issuers } from "../../src/credentials/issuers.ts";
import { issueCredential, issuerRecord, newIssuerKey } from "../../src/credentials/issuing.ts";
import { BOB, NOW, newKeys } from "./kit.ts";

const SEALING = await newKeys("X25519");
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
