import type { SigningKeyRecord } from "../../src/contract/keys-file.ts";
import type { KnownKeys } from "../../src/intake/credential-step.ts";
import { isRefusal, type Refusal } from "../../src/intake/refusal.ts";
import { checkAfterSignature, checkBeforeSignature, type VerifiedEnvelope } from "../../src/intake/steps.ts";
import {
  importSecret,
  privateKeyOfSeed,
  publicKeyText,
  type SigningKey,
  sign,
  verify,
} from "../../src/signing/algorithms.ts";
import { canonicalText } from "../../src/signing/canonical.ts";
import { KeyRing } from "../../src/signing/key-ring.ts";
import type { Envelope, UnsignedEnvelope } from "../../src/wire/envelope.ts";

export const NOW = 1_790_000_000_000;

const SECRET = Buffer.alloc(32, 3).toString("base64url");
const PRIVATE_KEY = privateKeyOfSeed(Buffer.alloc(32, 4));
export const PUBLIC_KEY = publicKeyText(PRIVATE_KEY);

export const HMAC: SigningKey = { alg: "hmac-sha256", secret: importSecret(SECRET) };
export const ED25519: SigningKey = { alg: "ed25519", privateKey: PRIVATE_KEY };

const agents = ["agent://alice", "agent://alice.*"];
const SIGNING_KEYS: SigningKeyRecord[] = [
  { key_id: "alice-hmac", alg: "hmac-sha256", secret: SECRET, agents },
  { key_id: "alice-ed", alg: "ed25519", public_key: PUBLIC_KEY, agents },
  { key_id: "alice-old", alg: "hmac-sha256", secret: SECRET, agents, expires_at: new Date(NOW).toISOString() },
  { key_id: "gateway-forged", alg: "hmac-sha256", secret: SECRET, agents },
];
export const KEYS: KnownKeys = {
  ring: KeyRing.from({ api_keys: [], signing_keys: SIGNING_KEYS, issuers: [] }),
  hosts: new Set(),
};

export const MESSAGE: UnsignedEnvelope = {
  id: "env-1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  payload: { message: "hi" },
  ts: NOW,
  key_id: "alice-hmac",
};

/** A signed message, with changes made before it was signed. */
export function signed(changes: Partial<UnsignedEnvelope> = {}, key: SigningKey = HMAC): Envelope {
  const unsigned = { ...MESSAGE, ...changes };
  return { ...unsigned, sig: sign(key, canonicalText(unsigned)) };
}

/** What intake makes of a text, all steps. */
export function intake(text: string): Refusal | VerifiedEnvelope {
  const result = checkBeforeSignature(text, KEYS, NOW);
  if (isRefusal(result)) return result;
  return checkAfterSignature(result, verify(result.entry.key, result.canonical, result.envelope.sig));
}
