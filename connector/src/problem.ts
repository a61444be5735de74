import { knownCode, knownRetry, RelayError } from "./errors.ts";
import { textOf, waitOf } from "./frames.ts";
import { saidText } from "./said-text.ts";
import type { JsonObject } from "./types.ts";

/** The refusal in an answer of the relay over HTTP. Source: docs/protocol.md#errors. */
export function problemIn({ code, detail, hint, retry, retry_after_ms }: JsonObject): RelayError {
  return new RelayError(knownCode(textOf(code) ?? ""), {
    message: saidText(detail),
    hint: saidText(hint),
    retry: knownRetry(retry),
    retryAfterMs: waitOf(retry_after_ms),
  });
}
