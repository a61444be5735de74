import type { z } from "zod";
import type { RelayError, Retry } from "../errors.ts";

/** Errors of tools, for a model: what happened, and what to do, in words of the tools. */

/** An error with texts for people: a RelayError, or an error of PresenceOf. */
interface Failure extends Error {
  readonly code: string;
  readonly hint: string;
  readonly retry?: Retry | undefined;
  readonly outcome?: RelayError["outcome"] | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** Any other error may contain anything: it is not passed on. */
const UNEXPECTED = { code: "internal_error", message: "The tool failed.", hint: "If it happens again, report it." };

/** Where the hint of the library, or of the relay, names what tools do not have. */
const HINTS: Readonly<Record<string, string>> = {
  target_not_online: "Send it again when the target is online; wait_online_seconds waits for that.",
  superseded_elsewhere: "A person stops the other, or starts relay mcp with --take-over, which ends it.",
  superseded: "A person stops the other connection, then starts relay mcp again.",
  invalid_envelope:
    "The message says what is wrong: send it anew without that, such as half of a surrogate pair in a text.",
  unknown_key: "A person has the relay's operator add the key; relay check --key FILE tells more.",
  invalid_credential: "A person has the issuer issue another; relay check --key FILE tells more.",
  recipient_unverified:
    "A person adds the target's issuer to trusted_issuers of the key file. Unsealed, the relay can read it: ask your user first.",
};

export function hintOf({ code, hint }: Pick<Failure, "code" | "hint">): string {
  return HINTS[code] ?? hint;
}

/** What the tool answers for what it threw. */
export function errorOf(error: unknown): object {
  if (!isFailure(error)) return UNEXPECTED;
  const { code, message, retry, outcome, retryAfterMs } = error;
  const hint = hintOf(error);
  return {
    code,
    message,
    hint,
    retry,
    outcome,
    retry_after_ms: retryAfterOf(retry, retryAfterMs),
  };
}

/** The same for arguments that the tool does not take. */
export function argumentErrorOf({ issues }: z.ZodError): object {
  return {
    code: "invalid_arguments",
    message: "The tool does not take these arguments; nothing was sent.",
    hint: "Mend the members in errors, as the tool's inputSchema has them, and call again.",
    errors: issues.map((issue) => ({ member: memberOf(issue), message: issue.message })),
    retry: "fix",
    outcome: "refused",
  };
}

function memberOf(issue: z.core.$ZodIssue): string {
  return issue.code === "unrecognized_keys" ? issue.keys.join(", ") : issue.path.join(".");
}

/** No time heals what somebody has to fix. */
function retryAfterOf(retry: Retry | undefined, ms: number | undefined): number | undefined {
  return retry === "later" ? ms : undefined;
}

function isFailure(error: unknown): error is Failure {
  return error instanceof Error && "code" in error && "hint" in error;
}
