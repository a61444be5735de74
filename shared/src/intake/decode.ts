import { ENVELOPE_LIMITS } from "../contract/limits.ts";
import { type Refusal, refuse } from "./refusal.ts";

/**
 * The value of a JSON text, checked for what JSON allows and the relay does not, wherever it stands: nesting beyond
 * the payload's 32 levels, `__proto__` as a member name, lone surrogates, numbers that are not finite doubles. This
 * comes straight after parsing: later steps may overflow on depth, or drop `__proto__` in silence.
 * Refusals: malformed_json, invalid_envelope. Source: protocol, section 2.
 */
export function decode(text: string): { readonly value: unknown } | Refusal {
  const parsed = parse(text);
  if (parsed === undefined) return refuse("malformed_json", undefined);
  const detail = faultIn(parsed.value, 0);
  return detail === undefined ? parsed : refuse("invalid_envelope", parsed.value, { detail });
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** `level` of the envelope is 0, so that the payload's is 1. It bounds the recursion. */
function faultIn(value: unknown, level: number): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : "A string holds a lone surrogate.";
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "A number is not a finite double.";
  if (typeof value !== "object" || value === null) return undefined;
  if (level > ENVELOPE_LIMITS.maxPayloadDepth) return "The payload is nested more than 32 levels deep.";
  return Array.isArray(value) ? faultInItems(value, level) : faultInMembers(value, level);
}

function faultInItems(items: readonly unknown[], level: number): string | undefined {
  for (const item of items) {
    const fault = faultIn(item, level + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultInMembers(object: object, level: number): string | undefined {
  for (const [name, value] of Object.entries(object)) {
    if (name === "__proto__") return "A member is named __proto__.";
    if (!name.isWellFormed()) return "A member name holds a lone surrogate.";
    const fault = faultIn(value, level + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
