import { createHmac } from "node:crypto";

/**
 * A keyed hash of what a client is seen by. The salt is the window's, random, in memory and Redis only: outside of them
 * nobody can name the address behind an id, and no id outlives the window. Source: protocol, sections 9 and 10.
 * @param purpose keeps ids of one use apart from those of another.
 */
export function anonymousId(salt: string, purpose: "visitor" | "address", ...traits: readonly string[]): string {
  return createHmac("sha256", salt)
    .update([purpose, ...traits].join("\n"))
    .digest("base64url")
    .slice(0, 22);
}
