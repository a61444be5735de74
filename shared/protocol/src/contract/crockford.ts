/** Crockford base32 in lower case, in which ids are written: no digit of it is easily taken for another. */

/** The digits from 0 to 31. */
export const CROCKFORD_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** @param bytes a whole number of groups of 5, of which each gives 8 digits. */
export function crockford(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += CROCKFORD_DIGITS[(value >> bits) & 31];
    }
  }
  return text;
}
