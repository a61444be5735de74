import { createHmac } from "node:crypto";

/**
 * A keyed hash of what identifies a client. Without the salt nobody can find the address of an id, and ids of different
 * salts cannot be joined. Source: docs/reports.md#privacy.
 * @param salt random, and never on a disk: the window's, which goes with the window, or a process's own, which goes with it.
 * @param purpose ids of different purposes cannot be joined.
 */
export function anonymousId(salt: string, purpose: "visitor" | "address", ...traits: readonly string[]): string {
  return createHmac("sha256", salt)
    .update([purpose, ...traits].join("\n"))
    .digest("base64url")
    .slice(0, 22);
}
