import { type ErrorCode, type ErrorDetails, knownCode, RelayError, type Retry } from "./errors.ts";
import { type FieldError, withFields } from "./field-errors.ts";

/** What the relay says of something that it refused, in a frame or over HTTP. */
export interface Said {
  readonly code: string;
  readonly message: string | undefined;
  readonly hint: string | undefined;
  readonly retry: Retry | undefined;
  readonly errors: readonly FieldError[];
}

/**
 * Codes of which the relay's hint is for programs that make envelopes themselves, and names members of the wire. Whoever calls
 * this package reads the catalogue's.
 */
const OWN_HINTS: ReadonlySet<ErrorCode> = new Set([
  "malformed_json",
  "invalid_envelope",
  "clock_skew",
  "unknown_key",
  "bad_signature",
  "key_not_allowed",
  "wrong_connection",
  "not_registered",
  "not_your_session",
  "register_timeout",
]);
/** The same of its message. */
const OWN_MESSAGES: ReadonlySet<ErrorCode> = new Set(["unknown_key"]);

/** The error's code and details, for a caller of this package. */
export function refusalDetails({ code: said, message, hint, retry, errors }: Said): ErrorDetails & { code: ErrorCode } {
  const code = knownCode(said);
  const sentence = OWN_MESSAGES.has(code) ? undefined : message;
  return {
    code,
    message: sentence && withFields(sentence, errors),
    hint: OWN_HINTS.has(code) ? undefined : hint,
    retry,
    errors,
  };
}

export function refusalOf(said: Said & { readonly retryAfterMs: number | undefined }): RelayError {
  const { code, ...details } = refusalDetails(said);
  return new RelayError(code, { ...details, retryAfterMs: said.retryAfterMs });
}
