import { knownRetry, type RelayError } from "./errors.ts";
import { fieldErrorsIn, textOf, waitOf } from "./frames.ts";
import { refusalOf } from "./refusal.ts";
import { saidText } from "./said-text.ts";
import type { JsonObject } from "./types.ts";

/** The refusal in an answer of the relay over HTTP. Source: docs/protocol.md#errors. */
export function problemIn({ code, detail, hint, retry, errors, retry_after_ms }: JsonObject): RelayError {
  return refusalOf({
    code: textOf(code) ?? "",
    message: saidText(detail),
    hint: saidText(hint),
    retry: knownRetry(retry),
    errors: fieldErrorsIn(errors),
    retryAfterMs: waitOf(retry_after_ms),
  });
}
