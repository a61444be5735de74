import { encodeBase64url } from "./base64url.ts";
import { membersOf, textOf } from "./frames.ts";
import { importVerifyKey, type VerifyKey } from "./keys.ts";

/** A `key_id` that only the relay's gateways use. Source: docs/protocol.md#gateway-signing. */
export const GATEWAY_KEY_PREFIX = "gateway-";

const DIGEST_CHARACTERS = 22;

/** The keys of a signing manifest's `gateway_keys`, by id; what cannot be used is left out. */
export async function readGatewayKeys(listed: unknown): Promise<ReadonlyMap<string, VerifyKey>> {
  const keys = await Promise.all((Array.isArray(listed) ? listed : []).map(usableKey));
  return new Map(keys.flatMap((key) => (key === undefined ? [] : [key])));
}

async function usableKey(listed: unknown): Promise<[string, VerifyKey] | undefined> {
  const { key_id, alg, public_key } = membersOf(listed);
  const [keyId, publicKey = ""] = [textOf(key_id), textOf(public_key)];
  // Whoever pinned the id has pinned the key: no relay puts another in its place.
  if (alg !== "ed25519" || keyId === undefined || keyId !== (await idOf(publicKey))) return undefined;
  try {
    return [keyId, await importVerifyKey({ keyId, alg, publicKey })];
  } catch {
    return undefined;
  }
}

async function idOf(publicKey: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(publicKey));
  return GATEWAY_KEY_PREFIX + encodeBase64url(new Uint8Array(digest)).slice(0, DIGEST_CHARACTERS);
}
