import { hash } from "node:crypto";
import { decodeBase64url } from "../signing/base64url.ts";
import { ED25519_BYTES, importPublicKey } from "../signing/ed25519.ts";
import { isSmallOrderX25519 } from "../signing/small-order.ts";

/** The curves of the keys in a credential: one for signatures, one for sealed payloads. Source: RFC 8037, section 2. */
export type Curve = "Ed25519" | "X25519";

/**
 * The key of a public JWK of the curve, in base64url; undefined when the value is anything else: a private key, an `x` that
 * is not the one spelling of 32 bytes, a point of small order. Other members do not count.
 */
export function readPublicJwk(value: unknown, curve: Curve): string | undefined {
  if (typeof value !== "object" || value === null || Object.hasOwn(value, "d")) return undefined;
  const { kty, crv, x } = value as { readonly [name: string]: unknown };
  if (kty !== "OKP" || crv !== curve || typeof x !== "string") return undefined;
  return (curve === "X25519" ? isUsableX25519(x) : isPublicKey(x)) ? x : undefined;
}

/** Identifies the key, in base64url. Source: RFC 7638, section 3. */
export function thumbprintOf(x: string, curve: Curve): string {
  return hash("sha256", `{"crv":"${curve}","kty":"OKP","x":"${x}"}`, "base64url");
}

/** True for an Ed25519 key that can be used, in base64url. */
export function isPublicKey(x: string): boolean {
  try {
    importPublicKey(x);
    return true;
  } catch {
    return false;
  }
}

function isUsableX25519(x: string): boolean {
  const bytes = decodeBase64url(x);
  return bytes?.length === ED25519_BYTES.key && !isSmallOrderX25519(bytes);
}
