import { STATUS_CODES } from "node:http";
import { ERRORS, RelayError } from "../contract/errors.ts";
import { HTTP_LIMITS } from "../contract/limits.ts";
import type { Problem } from "../contract/responses.ts";

/** A refusal as HTTP sends it. Source: RFC 9457; protocol, section 9. */
export interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Problem;
}

/**
 * Makes the problem document of a refusal, with its header fields. Whatever may be sent again later carries a
 * Retry-After, so that no client has to guess.
 * @param now epoch milliseconds; told to a client whose clock is off.
 */
export function problemOf(error: RelayError, now = Date.now()): ProblemAnswer {
  const { httpStatus, title, hint, retry } = ERRORS[error.code];
  const status = httpStatus ?? 500;
  const retryAfterMs = error.retryAfterMs ?? (retry === "later" ? HTTP_LIMITS.unavailableRetryAfterMs : undefined);
  const wait = retryAfterMs === undefined ? undefined : waitOf(retryAfterMs);
  return {
    status,
    headers: {
      "Content-Type": "application/problem+json",
      "Cache-Control": "no-store",
      ...(wait && { "Retry-After": String(wait.retry_after_seconds) }),
      ...(status === 401 && { "WWW-Authenticate": 'ApiKey realm="agent-relay"' }),
    },
    body: {
      type: `urn:agent-relay:problem:${error.code}`,
      title,
      status,
      detail: error.message,
      ok: false,
      code: error.code,
      hint,
      ...(error.errors && { errors: error.errors.map(({ field, message }) => ({ field, message })) }),
      ...wait,
      ...(error.code === "clock_skew" && { server_time: now }),
    },
  };
}

function waitOf(ms: number): { retry_after_ms: number; retry_after_seconds: number } {
  return { retry_after_ms: Math.max(1, Math.ceil(ms)), retry_after_seconds: Math.max(1, Math.ceil(ms / 1000)) };
}

/** Any thrown thing as a refusal: what the relay did not foresee says nothing of itself to the client. */
export function refusalOf(error: unknown): RelayError {
  return error instanceof RelayError ? error : new RelayError("internal_error");
}

/**
 * A refusal as the bytes of a whole HTTP/1.1 answer that ends its connection, for sockets that no parser serves.
 * @param more header fields beside those of every refusal.
 */
export function rawProblem(error: RelayError, more: Readonly<Record<string, string>> = {}): string {
  const { status, headers, body } = problemOf(error);
  const text = JSON.stringify(body);
  const fields = { ...headers, ...more, "Content-Length": Buffer.byteLength(text), Connection: "close" };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, "", text].join("\r\n");
}
