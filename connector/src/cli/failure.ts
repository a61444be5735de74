import { RelayError } from "../errors.ts";
import { exitCodeOf } from "./exit-codes.ts";

/** Why a command could not do what it was asked, in words for people. They hold no secret and no word of the command line. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: string;
  /** What to do about it. */
  readonly hint: string;

  /** @param code decides the exit code; see exit-codes.ts. */
  constructor(code: string, message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }

  get exitCode(): number {
    return exitCodeOf(this.code);
  }
}

/** The command line, or what it was given to send, was not understood. */
export function usage(message: string, hint = "See --help."): Failure {
  return new Failure("usage", message, hint);
}

/** What a thrown value means for the person in front of it. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof RelayError) return new Failure(error.code, error.message, error.hint);
  return new Failure("failed", (error as Error)?.message ?? String(error), "Report it if it stays.");
}
