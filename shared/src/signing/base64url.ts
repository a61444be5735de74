/**
 * The bytes of base64url text without padding, or undefined for any other text. Node's decoder skips characters that
 * it does not know and ignores stray bits; encoding again shows both, so that one value has one spelling.
 * Source: RFC 4648, sections 3.5 and 5.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
