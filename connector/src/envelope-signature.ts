import { decodeBase64url } from "./base64url.ts";
import { signedPart } from "./canonical.ts";
import { ALGORITHMS, type VerifyKey } from "./keys.ts";
import type { Envelope } from "./types.ts";

/** True when the envelope's `sig` is the key's. Never rejects. */
export async function isSignedBy({ alg, key }: VerifyKey, envelope: Envelope): Promise<boolean> {
  const sig = decodeBase64url(envelope.sig);
  if (sig === undefined) return false;
  try {
    return await crypto.subtle.verify(ALGORITHMS[alg], key, sig, new TextEncoder().encode(signedPart(envelope)));
  } catch {
    return false;
  }
}
