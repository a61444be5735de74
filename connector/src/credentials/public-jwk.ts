import { calculateJwkThumbprint } from "jose";
import { decodeBase64url } from "../base64url.ts";
import { membersOf } from "../frames.ts";
import { isSmallOrderEd25519, isSmallOrderX25519 } from "../small-order.ts";

/** The curves of the keys in a credential: one for signatures, one for sealed payloads. Source: RFC 8037, section 2. */
export type Curve = "Ed25519" | "X25519";

const KEY_BYTES = 32;

/**
 * The `x` of a public JWK of the curve; undefined when the value is anything else: a private key, an `x` that is not the
 * one spelling of 32 bytes, a point of small order. Other members do not count.
 */
export function readPublicJwk(value: unknown, curve: Curve): string | undefined {
  const members = membersOf(value);
  const { kty, crv, x } = members;
  if (kty !== "OKP" || crv !== curve || typeof x !== "string" || Object.hasOwn(members, "d")) return undefined;
  return isPublicKey(x, curve) ? x : undefined;
}

/** True for a public key that can be used, in base64url. */
export function isPublicKey(x: string, curve: Curve): boolean {
  const point = decodeBase64url(x);
  if (point?.length !== KEY_BYTES) return false;
  return curve === "Ed25519" ? !isSmallOrderEd25519(point) : !isSmallOrderX25519(point);
}

/** Identifies the key, in base64url. Source: RFC 7638, section 3. */
export async function thumbprintOf(x: string, curve: Curve): Promise<string> {
  return await calculateJwkThumbprint({ kty: "OKP", crv: curve, x });
}
