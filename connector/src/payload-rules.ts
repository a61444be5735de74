import { PAYLOAD_LIMITS } from "./limits.ts";
import type { JsonObject } from "./types.ts";

/**
 * True for a parsed value that the relay would take as a payload. What was sealed, or lay in a file, was never seen by one,
 * and a relay may be none. Source: docs/protocol.md#envelopes.
 */
export function isPayload(value: unknown): value is JsonObject {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && keepsRules(value, 1, { members: 0 });
}

/** The level bounds the recursion. */
function keepsRules(value: unknown, level: number, size: { members: number }): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  if (level > PAYLOAD_LIMITS.maxLevels) return false;
  const members = Object.entries(value);
  size.members += members.length;
  if (size.members > PAYLOAD_LIMITS.maxMembers) return false;
  return members.every(
    ([name, member]) => name !== "__proto__" && name.isWellFormed() && keepsRules(member, level + 1, size),
  );
}
