/**
 * The bytes of base64url text without padding; undefined for any other text. Node's decoder skips unknown characters and
 * ignores trailing bits: encoding the bytes again finds both, so that one value has exactly one spelling.
 * Source: RFC 4648, sections 3.5 and 5.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
