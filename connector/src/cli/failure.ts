import { RelayError, type Retry } from "../errors.ts";
import { exitCodeOf } from "./exit-codes.ts";

/** Why a command failed, for people. The texts contain no secret, and nothing of the command line. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: string;
  /** What to do about it. */
  readonly hint: string;
  /** Whether the same can succeed later, where the relay or the SDK says so. */
  readonly retry: Retry | undefined;

  /** When the relay takes it again, where it says so. */
  readonly retryAfterMs: number | undefined;

  /** @param code decides the exit code; see exit-codes.ts. */
  constructor(code: string, message: string, hint: string, retry?: Retry, retryAfterMs?: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
    this.code = code;
    this.hint = hint;
    this.retry = retry;
  }

  get exitCode(): number {
    return exitCodeOf(this.code);
  }
}

/** The command line, or the input, is invalid. */
export function usageError(message: string, hint = "See --help."): Failure {
  return new Failure("usage", message, hint);
}

/** Turns any thrown value into a Failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof RelayError) return new Failure(error.code, error.message, error.hint, error.retry);
  return new Failure("failed", (error as Error)?.message ?? String(error), "If it happens again, report it.");
}
