import { CREDENTIAL_HEADER, CREDENTIAL_KEY_PREFIX } from "../contract/credential.ts";
import type { CredentialTestVector } from "../contract/responses.ts";
import { privateKeyOfSeed, publicKeyText, signEd25519 } from "../signing/ed25519.ts";
import { thumbprintOf } from "./public-jwk.ts";

/** Published on purpose: with these keys nothing is signed but the test vector. */
const ISSUER_SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => 64 + index));
const AGENT_SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index));
const ISSUED_AT = 1_790_000_000;
const DAY_SECONDS = 86_400;

/** A credential, its issuer, and what is derived from it. Source: docs/protocol.md#credentials. */
export function credentialTestVector(): CredentialTestVector {
  const issuerKey = privateKeyOfSeed(ISSUER_SEED);
  const publicKey = publicKeyText(issuerKey);
  const x = publicKeyText(privateKeyOfSeed(AGENT_SEED));
  const [alg] = CREDENTIAL_HEADER.algorithms;
  const header = { alg, typ: CREDENTIAL_HEADER.typ, kid: thumbprintOf(publicKey, "Ed25519") };
  const claims = {
    iss: "test-vector",
    sub: "agent://test-vector.alice",
    cnf: { jwk: { kty: "OKP", crv: "Ed25519", x } },
    iat: ISSUED_AT,
    exp: ISSUED_AT + 30 * DAY_SECONDS,
  };
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  const signature = signEd25519(issuerKey, Buffer.from(signed)).toString("base64url");
  return {
    issuer: { issuer: claims.iss, keys: [{ public_key: publicKey }], agents: ["agent://test-vector.*"], revoked: [] },
    issuer_private_key: ISSUER_SEED.toString("base64url"),
    header,
    claims,
    credential: `${signed}.${signature}`,
    key_id: `${CREDENTIAL_KEY_PREFIX}${thumbprintOf(x, "Ed25519")}`,
  };
}
