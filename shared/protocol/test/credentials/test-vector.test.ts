import { expect, test } from "@jest/globals";
import { compactVerify, importJWK } from "jose";
import { KeysFile } from "../../src/contract/keys-file.ts";
import { readCredential } from "../../src/signing/credentials.ts";
import { KeyRing } from "../../src/signing/key-ring.ts";
import { credentialTestVector } from "../../src/signing/test-vectors.ts";

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
