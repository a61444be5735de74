import type { CredentialTestVector, SealedPayloadTestVector, TestVector } from "../contract/responses.ts";
import { CREDENTIAL_HEADER, CREDENTIAL_KEY_PREFIX } from "../wire/credential.ts";
import type { UnsignedEnvelope } from "../wire/envelope.ts";
import { importSecret, privateKeyOfSeed, publicKeyText, type SigningKey, sign, signEd25519 } from "./algorithms.ts";
import { canonicalText } from "./canonical.ts";
import { thumbprintOf } from "./credentials.ts";

/** Published on purpose. These keys sign only the test vectors and the examples in documents. */
const SECRET = Buffer.from(Array.from({ length: 32 }, (_, index) => index));
const SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index));

const ENVELOPE: Omit<UnsignedEnvelope, "key_id"> = {
  id: "test-vector-1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  task_id: "tâche 7",
  payload: {
    message: 'Grüße, 世界 😂 "quoted" \\ \u000f\n',
    numbers: [333333333.3333333, 1e30, 4.5, 0.002, 1e-27, 1e21, 0, -1],
    nested: {
      "€": "Euro",
      b: [{ z: null, a: true }, []],
      a: {},
      "10": 10,
      "9": 9,
      "😂": "after the Euro, before U+FB33",
      "\ufb33": 1,
    },
  },
  ts: 1_790_000_000_000,
};

/**
 * One vector for each algorithm: a key, an envelope without `sig`, and the signature.
 * Source: docs/protocol.md#signatures.
 */
export function testVectors(): TestVector[] {
  const secret = SECRET.toString("base64url");
  const privateKey = privateKeyOfSeed(SEED);
  return [
    vector(
      "test-vector-ed25519",
      { alg: "ed25519", privateKey },
      {
        private_key: SEED.toString("base64url"),
        public_key: publicKeyText(privateKey),
      },
    ),
    vector("test-vector-hmac", { alg: "hmac-sha256", secret: importSecret(secret) }, { secret }),
  ];
}

function vector(keyId: string, signingKey: SigningKey, key: TestVector["key"]): TestVector {
  const envelope = { ...ENVELOPE, key_id: keyId };
  const canonical = canonicalText(envelope);
  return { alg: signingKey.alg, key, envelope, canonical, sig: sign(signingKey, canonical) };
}

/** Published on purpose. These keys sign only the test vector. */
const ISSUER_SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => 64 + index));
const AGENT_SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index));
const ISSUED_AT = 1_790_000_000;
const DAY_SECONDS = 86_400;

/** A credential with its issuer and all derived values. Source: docs/protocol.md#credentials. */
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

/** Made once, because the relay neither seals nor opens. Both connectors open it. The key is published on purpose. */
const PUBLIC_KEY = "ST6C_HRGSlkmiBdiPSBTxeuOLMSpiLT-4XnsawENUx0";
const PRIVATE_KEY = "gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp8";
const KID = "96RWz574V_t7txo1oAbLlnHzNSxGAVxHg_tTIDUPCB8";

/**
 * An envelope with a sealed payload, the key that opens it, and the plaintext.
 * Source: docs/protocol.md#sealed-payloads.
 */
export const SEALED_PAYLOAD_TEST_VECTOR: SealedPayloadTestVector = {
  recipient_key: { private_key: PRIVATE_KEY, public_key: PUBLIC_KEY },
  envelope: {
    id: "test-vector-2",
    type: "message.send",
    from: "agent://alice",
    to: "agent://bob",
    payload: {
      sealed: {
        v: 1,
        kid: KID,
        enc: "YFpyXSpK3-6xop4X7dYhwbdZPujNvESsbEq24vgF0jw",
        ct: "BqWPvz4oEb8n4JmGtHIX-8CNxTgZ8nMFXxIrmtRsne49HyaG3lSqUl3Hqg",
      },
    },
  },
  aad: `{"from":"agent://alice","id":"test-vector-2","kid":"${KID}","to":"agent://bob","type":"message.send","v":1}`,
  plaintext: '{"message":"for Bob alone"}',
};
