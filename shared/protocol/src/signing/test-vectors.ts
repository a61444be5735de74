import type { UnsignedEnvelope } from "../contract/envelope.ts";
import type { TestVector } from "../contract/responses.ts";
import { importSecret, type SigningKey, sign } from "./algorithms.ts";
import { canonicalText } from "./canonical.ts";
import { privateKeyOfSeed, publicKeyText } from "./ed25519.ts";

/** Published on purpose: these keys sign nothing but the test vectors and the examples of the documents. */
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

/** One vector for each algorithm: a key, an envelope without `sig`, and the signature. Source: docs/protocol.md#signatures. */
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
