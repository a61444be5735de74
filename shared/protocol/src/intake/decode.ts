import type { JsonObject } from "../contract/envelope.ts";
import { ENVELOPE_LIMITS } from "../contract/limits.ts";
import { parseJson } from "./parse-json.ts";
import { type Refusal, refuse } from "./refusal.ts";

const TOO_MANY_MEMBERS = `The payload has more than ${ENVELOPE_LIMITS.maxPayloadMembers} members and array elements.`;

/**
 * The value of a JSON text, checked for what JSON allows and the relay does not: a payload of more than 32 levels or 2,000
 * members, `__proto__` as a member name, lone surrogates, numbers that are not finite doubles. It must come right after parsing:
 * later steps would overflow the stack on depth, or silently drop `__proto__`.
 * Refusals: malformed_json, invalid_envelope. Source: docs/protocol.md#envelopes.
 */
export function decode(text: string): { readonly value: unknown } | Refusal {
  const parsed = parse(text);
  if (parsed === undefined) return refuse("malformed_json", undefined);
  const detail = problemIn(parsed.value, 0, { members: 0 });
  return detail === undefined ? parsed : refuse("invalid_envelope", parsed.value, { detail });
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
}

/** What the payload has so far: members and array elements, at any depth. */
interface Size {
  members: number;
}

/** The envelope is at level 0, its payload at level 1. The level bounds the recursion. */
function problemIn(value: unknown, level: number, size: Size): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : "A string contains a lone surrogate.";
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "A number is not a finite double.";
  if (typeof value !== "object" || value === null) return undefined;
  if (level > ENVELOPE_LIMITS.maxPayloadDepth) return "The payload has more than 32 levels of nesting.";
  return Array.isArray(value) ? problemInItems(value, level, size) : problemInMembers(value, level, size);
}

function problemInItems(items: readonly unknown[], level: number, size: Size): string | undefined {
  if (isTooMany(items.length, size)) return TOO_MANY_MEMBERS;
  for (const item of items) {
    const problem = problemIn(item, level + 1, size);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemInMembers(object: object, level: number, size: Size): string | undefined {
  const names = Object.keys(object);
  if (level > 0 && isTooMany(names.length, size)) return TOO_MANY_MEMBERS;
  for (const name of names) {
    if (name === "__proto__") return "A member must not be named __proto__.";
    if (!name.isWellFormed()) return "A member name contains a lone surrogate.";
    const problem = problemIn((object as JsonObject)[name], level + 1, size);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function isTooMany(more: number, size: Size): boolean {
  size.members += more;
  return size.members > ENVELOPE_LIMITS.maxPayloadMembers;
}
