import { type ErrorCode, RelayError, type Retry } from "../errors.ts";
import { exitCodeOf } from "./exit-codes.ts";

/** Details of a failure, where they are known. */
export interface FailureDetails {
  /** Whether the same can succeed later, as the relay or the SDK says. */
  readonly retry?: Retry | undefined;
  /** When the relay takes it again. */
  readonly retryAfterMs?: number | undefined;
  readonly outcome?: RelayError["outcome"] | undefined;
}

/** Why a command failed, for people. The texts contain no secret, and nothing of the command line. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: string;
  /** What to do about it. */
  readonly hint: string;
  readonly retry: Retry | undefined;
  readonly retryAfterMs: number | undefined;
  /** `unknown`: what was to be sent may have been accepted and delivered. */
  readonly outcome: RelayError["outcome"];

  /** @param code decides the exit code; see exit-codes.ts. */
  constructor(code: string, message: string, hint: string, details: FailureDetails = {}) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.retry = details.retry;
    this.retryAfterMs = details.retryAfterMs;
    this.outcome = details.outcome ?? "refused";
  }

  get exitCode(): number {
    return exitCodeOf(this.code);
  }
}

/** Where the library's hint names an option of its own. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  target_not_online: "Send it again when the target is online; --wait-online waits for that.",
  superseded_elsewhere: "Stop the other, or use it to send; --take-over of send, listen and others ends it.",
};

/** The command line, or the input, is invalid. */
export function usageError(message: string, hint = "See --help."): Failure {
  return new Failure("usage", message, hint);
}

/** Turns any thrown value into a Failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof RelayError)
    return new Failure(error.code, error.message, HINTS[error.code] ?? error.hint, error);
  return new Failure("failed", (error as Error)?.message ?? String(error), "If it happens again, report it.");
}
