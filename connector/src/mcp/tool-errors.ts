import type { z } from "zod";
import { isOwnHint, type RelayError, type Retry } from "../errors.ts";

/** Errors of tools, for a model: what happened, and what to do, in words of the tools. */

/** An error with texts for people: a RelayError, or an error of PresenceOf. */
interface Failure extends Error {
  readonly code: string;
  readonly hint: string;
  readonly retry?: Retry | undefined;
  readonly outcome?: RelayError["outcome"] | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** What a tool refuses by itself: nothing was sent, and the same call cannot succeed. */
export class ToolRefusal extends Error implements Failure {
  override readonly name = "ToolRefusal";
  readonly code: string;
  readonly hint: string;
  readonly retry = "never";
  readonly outcome = "refused";

  constructor(code: string, { message, hint }: { readonly message: string; readonly hint: string }) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** Any other error may contain anything: it is not passed on. */
const UNEXPECTED = { code: "internal_error", message: "The tool failed.", hint: "If it happens again, report it." };

/** A wrong address is as likely as a wrong key: without RELAY_URL it is that of a relay on this machine. */
const WHICH_RELAY = "Tell your user the url in connection: is that the relay of this key? RELAY_URL sets it. If it is:";

/** Where the hint of the library, or of the relay, names what tools do not have. */
const HINTS: Readonly<Record<string, string>> = {
  closed: "Call again: the connection began anew, as after a change of the key file.",
  target_not_online: "Send it again when the target is online; wait_online_seconds waits for that.",
  not_a_relay:
    "A person corrects RELAY_URL, or sets RELAY_HTTP_URL to where the relay answers over HTTP, then starts relay mcp again.",
  superseded_elsewhere:
    "A person stops the other; then call again. Or a person starts relay mcp with --take-over, which ends it.",
  superseded: "A person stops the other connection; then call again.",
  unknown_session:
    "Take the session_id of a session.request, or of pending_sessions in my_status. The relay forgets a session an hour after its end.",
  invalid_envelope:
    "The message says what is wrong: send it anew without that, such as half of a surrogate pair in a text.",
  unknown_key: `${WHICH_RELAY} A person has its operator add the key; relay check --key FILE tells more.`,
  invalid_credential: `${WHICH_RELAY} A person has its operator admit the issuer (unknown_issuer) or the name that was dialled (wrong_relay), or the issuer issue another; relay check --key FILE tells more.`,
  recipient_unknown:
    "Check the target's id. It has to have been online with a credential: wait_online_seconds waits for that. Unsealed, the relay can read it: ask your user first.",
  recipient_unverified:
    "A person adds the target's issuer to trusted_issuers of the key file, unless the message names another reason. Unsealed, the relay can read it: ask your user first.",
  recipient_unsealable:
    "The target's owner has a credential with a sealing key issued. Unsealed, the relay can read it: ask your user first.",
};

export function hintOf({ code, hint }: Pick<Failure, "code" | "hint">): string {
  // One that the status of an answer gave names no option.
  if (code === "not_a_relay" && isOwnHint({ code, hint })) return hint;
  return Object.hasOwn(HINTS, code) ? (HINTS[code] as string) : hint;
}

/** What the tool answers for what it threw. @param hinted what to do about it. */
export function errorOf(error: unknown, hinted: (failure: Failure) => string = hintOf): object {
  if (!isFailure(error)) return UNEXPECTED;
  const { code, message, retry, outcome, retryAfterMs } = error;
  return {
    code,
    message,
    hint: hinted(error),
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
    errors: issues.map((issue) => ({ member: memberOf(issue), message: textOf(issue) })),
    retry: "fix",
    outcome: "refused",
  };
}

function memberOf(issue: z.core.$ZodIssue): string {
  return issue.code === "unrecognized_keys" ? issue.keys.join(", ") : issue.path.join(".");
}

function textOf(issue: z.core.$ZodIssue): string {
  if (issue.code === "unrecognized_keys") return "is no member of this tool's arguments";
  if (issue.code !== "invalid_type") return issue.message;
  return issue.input === undefined ? "is missing" : `must be of type ${issue.expected}`;
}

/** No time heals what somebody has to fix. */
function retryAfterOf(retry: Retry | undefined, ms: number | undefined): number | undefined {
  return retry === "later" ? ms : undefined;
}

function isFailure(error: unknown): error is Failure {
  return error instanceof Error && "code" in error && "hint" in error;
}
