import { createHmac, createPublicKey, verify as cryptoVerify } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { compactVerify, importJWK } from "jose";
import { KeysFile } from "../../src/contract/keys-file.ts";
import { TestVector } from "../../src/contract/responses.ts";
import { privateKeyOfSeed, publicKeyText, SIGNATURE_CHARACTERS } from "../../src/signing/algorithms.ts";
import { canonicalText } from "../../src/signing/canonical.ts";
import { readCredential } from "../../src/signing/credentials.ts";
import { KeyRing } from "../../src/signing/key-ring.ts";
import { credentialTestVector, testVectors } from "../../src/signing/test-vectors.ts";
import type { UnsignedEnvelope } from "../../src/wire/envelope.ts";

const vectors = testVectors();
const vectorOf = (alg: string) => vectors.find((vector) => vector.alg === alg) as TestVector;

describe("The published test vectors", () => {
  test("are one for each algorithm, in the manifest's shape, the same every time", () => {
    expect(vectors.map(({ alg }) => alg).sort()).toEqual(Object.keys(SIGNATURE_CHARACTERS).sort());
    for (const vector of vectors) expect(TestVector.safeParse(vector).success).toBe(true);
    expect(testVectors()).toEqual(vectors);
  });

  test("come out the same for a reader who parses the envelope anew", () => {
    for (const { envelope, canonical } of vectors) {
      expect(canonicalText(JSON.parse(JSON.stringify(envelope)) as UnsignedEnvelope)).toBe(canonical);
    }
  });

  test("exercise sorting, numbers and strings of RFC 8785", () => {
    for (const { canonical } of vectors) {
      expect(canonical).toContain('"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,1e+21,0,-1]');
      expect(canonical).toContain(
        '"nested":{"10":10,"9":9,"a":{},"b":[{"a":true,"z":null},[]],"€":"Euro","😂":"after the Euro, before U+FB33","\ufb33":1}',
      );
    }
  });

  test("verify with nothing but the published keys and the standard library", () => {
    const hmac = vectorOf("hmac-sha256");
    const secret = Buffer.from(hmac.key.secret as string, "base64url");
    expect(createHmac("sha256", secret).update(hmac.canonical).digest("base64url")).toBe(hmac.sig);

    const ed25519 = vectorOf("ed25519");
    const x = ed25519.key.public_key as string;
    const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    const sig = Buffer.from(ed25519.sig, "base64url");
    expect(cryptoVerify(null, Buffer.from(ed25519.canonical), publicKey, sig)).toBe(true);
    expect(publicKeyText(privateKeyOfSeed(Buffer.from(ed25519.key.private_key as string, "base64url")))).toBe(x);
  });
});

const vector = credentialTestVector();

test("the published credential holds under its published issuer, as another implementation finds too", async () => {
  const credential = readCredential(vector.credential);
  expect(credential).toMatchObject({ issuer: "test-vector", keyId: vector.key_id });
  const { issuers } = KeyRing.from(KeysFile.parse({ issuers: [vector.issuer] }));
  expect(credential && issuers.problemOf(credential, credential.issuedAt)).toBeUndefined();
  const x = vector.issuer.keys[0]?.public_key as string;
  const key = await importJWK({ kty: "OKP", crv: "Ed25519", x }, "Ed25519");
  const { payload, protectedHeader } = await compactVerify(vector.credential, key);
  expect([protectedHeader, JSON.parse(Buffer.from(payload).toString())]).toEqual([vector.header, vector.claims]);
});
