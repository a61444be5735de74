import type { z } from "zod";
import { ENVELOPE_ID_PATTERN } from "../wire/envelope.ts";
import type { ErrorCode, FieldError } from "../wire/errors.ts";

/** Refusal of an envelope, for websocket and self-test alike. It holds only ids and a digest of the envelope. */
export interface Refusal {
  readonly code: ErrorCode;
  /** An additional sentence after the code's title. */
  readonly detail?: string;
  /** Replaces the code's hint. */
  readonly hint?: string;
  /** The envelope's id, if it is readable. */
  readonly envelopeId?: string;
  readonly errors?: readonly FieldError[];
  /** For bad_signature: hex SHA-256 of the text that the signature was checked against. */
  readonly canonicalSha256?: string;
  /** For unknown_key and key_not_allowed: the envelope's sender, if it is an agent id. */
  readonly from?: string;
  /** For unknown_key: the key id, if a register can bring the key with its credential. */
  readonly credentialKey?: string;
  /** Set once the signature is verified. Then the holder of this key sent the envelope. */
  readonly signer?: { readonly keyId: string; readonly issuer?: string | undefined };
}

/** Makes a refusal of `value`, with its id if that is a valid envelope id. */
export function refuse(code: ErrorCode, value: unknown, why: Omit<Refusal, "code" | "envelopeId"> = {}): Refusal {
  const envelopeId = envelopeIdOf(value);
  return envelopeId === undefined ? { code, ...why } : { code, envelopeId, ...why };
}

/** Tells a refusal from the result of a step. */
export function isRefusal(result: object): result is Refusal {
  return "code" in result;
}

/** The id of what may be an envelope, if it has a valid one. */
export function envelopeIdOf(value: unknown): string | undefined {
  const id: unknown = typeof value === "object" && value !== null && "id" in value ? value.id : undefined;
  return typeof id === "string" && ENVELOPE_ID_PATTERN.test(id) ? id : undefined;
}

/** Most unknown fields that an answer names, so that it stays small. */
const MAX_NAMED = 10;
const SHORT_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,14}$/;
/**
 * Words of letters, each with at most two digits: `sessionRef2`, `target_agent_id`. Random text of this length does not
 * match.
 */
const LONG_NAME = /^(?=.{0,32}$)_?[A-Z]?[a-z]+[0-9]{0,2}(?:(?:[_-][A-Z]?|[A-Z])[a-z]+[0-9]{0,2}|[_-][0-9]{1,2})*$/;
const KEY_PREFIX = /^[rsp]k[_-]/i;

const KINDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a JSON object",
  record: "a JSON object",
};
const UNITS: Readonly<Record<string, string>> = { string: " characters", array: " items" };

function bound(which: string, limit: number | bigint, origin: string): string {
  const unit = UNITS[origin];
  return unit === undefined ? `must be at ${which} ${limit}` : `must have at ${which} ${limit}${unit}`;
}

/** For `safeParse`: explains a misfit in words that hold nothing of the value. A schema's own message comes first. */
export const IN_PLAIN_WORDS = { error: plainWords } as const;

function plainWords(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is required";
      return issue.expected === "string" && Array.isArray(issue.input)
        ? "must be one text, and was given more than once, or as a list"
        : `must be ${KINDS[String(issue.expected)] ?? "of another type"}`;
    case "invalid_value":
      return issue.input === undefined ? "is required" : `must be ${issue.values.map(String).join(" or ")}`;
    case "too_small":
      return issue.origin === "string" ? "must not be empty" : bound("least", issue.minimum, issue.origin);
    case "too_big":
      return bound("most", issue.maximum, issue.origin);
    case "invalid_format":
      return `must match ${issue.pattern ?? issue.format}`;
    case "custom":
    case "unrecognized_keys":
      return undefined;
    default:
      return "is invalid";
  }
}

const UNNAMED: FieldError = { field: "unknown field", message: "not allowed" };

/** Validation errors for a log: field names of the schema, and rules. Never a value or a name that the sender chose. */
export function fieldErrors(error: z.ZodError): FieldError[] {
  return errorsOf(error, () => [UNNAMED]);
}

/** Validation errors for the sender, with the names of unknown fields. Source: docs/security.md#echoes. */
export function namedFieldErrors(error: z.ZodError): FieldError[] {
  return errorsOf(error, (names) => {
    const named = names.filter(isEchoed).slice(0, MAX_NAMED);
    const errors = named.map((field) => ({ field, message: "unknown field" }));
    return named.length < names.length ? [...errors, UNNAMED] : errors;
  });
}

function errorsOf(error: z.ZodError, unknown: (names: readonly string[]) => FieldError[]): FieldError[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code !== "unrecognized_keys") return [{ field: path.join(".") || "(root)", message: issue.message }];
    return unknown(issue.keys).map(({ field, message }) => ({ field: [...path, field].join("."), message }));
  });
}

/** A field name may be a misplaced key. A name that could be a key, or a part of one, is never echoed. */
function isEchoed(name: string): boolean {
  return !KEY_PREFIX.test(name) && (SHORT_NAME.test(name) || LONG_NAME.test(name));
}
