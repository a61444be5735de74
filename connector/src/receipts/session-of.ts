import { decodeBase64url } from "../base64url.ts";

const CROCKFORD_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
/** `ses_`, and two digits that are the relay's own. */
const PREFIX = /^ses_[0-9a-hjkmnp-tv-z]{2}/;
const DIGEST_BYTES = 15;
const DIGITS = 24;

/**
 * True for the id of the session that a request opens: a relay makes it of the request itself.
 * @param digest of the request, as decisions carry it. Source: docs/protocol.md#sessions.
 */
export function isSessionOf(sessionId: unknown, digest: string): boolean {
  return typeof sessionId === "string" && PREFIX.test(sessionId) && sessionId.replace(PREFIX, "") === idOf(digest);
}

/** 120 bits of the digest in Crockford base32. */
function idOf(digest: string): string {
  const bytes = decodeBase64url(digest)?.subarray(0, DIGEST_BYTES) ?? [];
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const digits = BigInt(`0x${hex}`).toString(32).padStart(DIGITS, "0");
  return [...digits].map((digit) => CROCKFORD_DIGITS[Number.parseInt(digit, 32)]).join("");
}
