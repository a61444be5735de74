import { ServiceError } from "protocol/contract/errors.ts";
import { HTTP_LIMITS } from "protocol/contract/limits.ts";

/** The refusal for whatever needs Redis while it does not answer. @param cause what Redis or the client said. */
export function unavailable(cause?: unknown): ServiceError {
  const error = new ServiceError("unavailable", { retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
  return cause === undefined ? error : Object.assign(error, { cause });
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}
