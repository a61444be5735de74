import { STATUS_CODES } from "node:http";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { Problem } from "relay-protocol/contract/responses.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";

/** A refusal as HTTP sends it. Source: RFC 9457; docs/protocol.md#http. */
interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Problem;
}

/**
 * The problem document of a refusal, with its header fields. Every refusal that says `later` has a Retry-After, so that
 * no client has to guess.
 * @param now Unix ms; sent to a client whose clock is wrong.
 */
export function problemOf(error: ServiceError, now = Date.now()): ProblemAnswer {
  const { httpStatus, title, retry } = ERRORS[error.code];
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
      ...(status === 426 && { Upgrade: "websocket", Connection: "Upgrade" }),
    },
    body: {
      ...error.members,
      type: `urn:agent-relay:problem:${error.code}`,
      title,
      status,
      detail: error.message,
      ok: false,
      code: error.code,
      hint: error.hint,
      retry,
      ...(error.errors && { errors: error.errors.map(({ field, message }) => ({ field, message })) }),
      ...wait,
      ...(error.code === "clock_skew" && { server_time: now }),
    },
  };
}

function waitOf(ms: number): { retry_after_ms: number; retry_after_seconds: number } {
  return { retry_after_ms: Math.max(1, Math.ceil(ms)), retry_after_seconds: Math.max(1, Math.ceil(ms / 1000)) };
}

/** Anything thrown, as a refusal. The client learns nothing about an unexpected error. */
export function refusalOf(error: unknown): ServiceError {
  return error instanceof ServiceError ? error : new ServiceError("internal_error");
}

/**
 * A refusal as the text of a complete HTTP/1.1 answer that closes its connection, for sockets without a ServerResponse.
 * @param more further header fields.
 */
export function rawProblem(error: ServiceError, more: Readonly<Record<string, string>> = {}): string {
  const { status, headers, body } = problemOf(error);
  const text = JSON.stringify(body);
  const fields = { ...headers, ...more, "Content-Length": Buffer.byteLength(text), Connection: "close" };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, "", text].join("\r\n");
}
