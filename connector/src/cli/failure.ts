import { accessSync, constants } from "node:fs";
import { isOwnHint, RelayError, type Retry, retryOf } from "../errors.ts";

/** Details of a failure, where they are known. */
interface FailureDetails {
  /** Whether the same can succeed later, where it is another than that of every failure with the code. */
  readonly retry?: Retry | undefined;
  /** When the relay takes it again. */
  readonly retryAfterMs?: number | undefined;
  readonly outcome?: RelayError["outcome"] | undefined;
  /** Of an answer over HTTP that no relay gave. */
  readonly edgeStatus?: number | undefined;
}

/** Of the codes that only the command line has. */
const OWN_RETRIES = new Map<string, Retry>([
  ["usage", "fix"],
  ["failed", "fix"],
]);

/** Why a command failed, for people. The texts contain no secret, and nothing of the command line. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: string;
  /** What to do about it. */
  readonly hint: string;
  /** Whether the same can succeed later. */
  readonly retry: Retry;
  readonly retryAfterMs: number | undefined;
  /** `unknown`: what was to be sent may have been accepted and delivered. */
  readonly outcome: RelayError["outcome"];
  /** Of an answer over HTTP that no relay gave. */
  readonly edgeStatus: number | undefined;
  /** Its sentence for people, where an envelope is what failed. */
  readonly outcomeText: string;

  /** @param code decides the exit code; see EXIT. */
  constructor(code: string, message: string, hint: string, details: FailureDetails = {}) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.retry = details.retry ?? OWN_RETRIES.get(code) ?? retryOf(code);
    this.retryAfterMs = details.retryAfterMs;
    this.outcome = details.outcome ?? "refused";
    this.edgeStatus = details.edgeStatus;
    const isOfEnvelope = details.outcome !== undefined && code !== "receipt_incomplete";
    this.outcomeText = isOfEnvelope ? `Outcome: ${details.outcome}.` : "";
  }

  get exitCode(): number {
    return exitCodeOf(this.code);
  }
}

/** Where the library's hint names an option, or a member, of its own. */
const HINTS: Readonly<Record<string, string>> = {
  invalid_envelope: "The message names each field that is wrong, and how.",
  recipient_unknown:
    "Check its id. It has to have been online with a credential: --wait-online waits for that, then seals again.",
  recipient_unverified:
    "If the message names no other reason, put the record of the target's issuer into trusted_issuers of the key file. A relay listen also takes it with --trust.",
  recipient_unsealable: "The target's owner has a credential with a sealing key issued, and registers with it.",
  unverified_delivery:
    "Put the record of the sender's issuer into trusted_issuers of the key file, or give it with --trust. --trust also takes a gateway's key.",
  unopenable_delivery:
    "The key file needs the sealing key that the sender found in the credential, and the record of the sender's issuer in trusted_issuers.",
  stale_delivery:
    "A relay delivers at once, so the relay or somebody before it kept the envelope. --max-age sets the limit.",
  key_revoked:
    "Have an issuer issue another credential (relay issue) and put it into the key file (relay credential). For a listed key, make another one (relay keygen) and have the relay's operator add it.",
  bad_signature: "Check that the private key belongs to the key id.",
  queue_full: "Wait for answers to earlier ones before you send the next.",
  target_not_online: "Send it again when the target is online; --wait-online waits for that.",
  unknown_key:
    "Give the relay's operator the record that relay keygen or relay init made. The operator adds it (npm run keys -- add record.json), or issues a credential for it (relay issue). relay credential puts that into the key file.",
  not_a_relay:
    "Check --url or RELAY_URL. If the relay answers over HTTP at another address, set RELAY_HTTP_URL. --take-over goes on without HTTP, and ends the agent's connection elsewhere.",
  superseded_elsewhere:
    "Stop the other process, or end its connection with --take-over. relay send, ask, request, approve and reject share a connection only with a relay listen or relay mcp of the same user on this machine.",
};

/** What to do about an error of the library, in the words of the command line. */
export function hintOf({ code, hint }: Pick<Failure, "code" | "hint">): string {
  // One that the status of an answer gave names no option.
  if (code === "not_a_relay" && isOwnHint({ code, hint })) return hint;
  return Object.hasOwn(HINTS, code) ? (HINTS[code] as string) : hint;
}

/** The command line, or the input, is invalid. */
export function usageError(message: string, hint = "See --help."): Failure {
  return new Failure("usage", message, hint);
}

/** Turns any thrown value into a Failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof RelayError) {
    const { message, hint } = withAuthorities({ message: error.message, hint: hintOf(error) });
    return new Failure(error.code, message, hint, error);
  }
  return new Failure("failed", (error as Error)?.message ?? String(error), "If it happens again, report it.", {
    retry: "later",
  });
}

/** How a command ended, for scripts. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  timeout: 5,
  superseded: 6,
  key: 7,
  receipt: 8,
  interrupted: 130,
} as const;

const CODES: Readonly<Record<string, number>> = {
  invalid_key: EXIT.key,
  unknown_key: EXIT.key,
  bad_signature: EXIT.key,
  key_not_allowed: EXIT.key,
  key_revoked: EXIT.key,
  invalid_credential: EXIT.key,
  recipient_unknown: EXIT.key,
  recipient_unverified: EXIT.key,
  recipient_unsealable: EXIT.key,
  invalid_envelope: EXIT.usage,
  invalid_issuer: EXIT.usage,
  frame_too_large: EXIT.usage,
  not_answerable: EXIT.usage,
  invalid_receipt: EXIT.receipt,
  receipt_incomplete: EXIT.receipt,
  missing_api_key: EXIT.key,
  invalid_api_key: EXIT.key,
  api_key_not_allowed_for_sender: EXIT.key,
  unreachable: EXIT.unreachable,
  not_a_relay: EXIT.unreachable,
  unavailable: EXIT.unreachable,
  rate_limited: EXIT.unreachable,
  over_capacity: EXIT.unreachable,
  not_ready: EXIT.unreachable,
  internal_error: EXIT.unreachable,
  closed: EXIT.unreachable,
  timeout: EXIT.timeout,
  target_not_online: EXIT.timeout,
  outcome_unknown: EXIT.timeout,
  superseded: EXIT.superseded,
  superseded_elsewhere: EXIT.superseded,
  clock_untrusted: EXIT.failed,
  queue_full: EXIT.failed,
  usage: EXIT.usage,
  failed: EXIT.failed,
  aborted: EXIT.interrupted,
};

/** @param code an error code of the relay, which may be any word, of the SDK, or of the command line itself. */
export function exitCodeOf(code: string): number {
  return Object.hasOwn(CODES, code) ? (CODES[code] as number) : EXIT.refused;
}

/** Node reads it once, when a process starts. */
const VARIABLE = "NODE_EXTRA_CA_CERTS";
const UNSET = `${VARIABLE} is not set in this process's environment.`;
const WHERE =
  "Set that variable in the env member of the MCP configuration, or in the shell that runs the command, and start it again.";

interface Texts {
  readonly message: string;
  readonly hint: string;
}

/**
 * Adds to the texts about a certificate that is not trusted whether this process has NODE_EXTRA_CA_CERTS: an application of the
 * desktop starts `relay mcp` without the environment of a shell. Other texts stay as they are.
 */
export function withAuthorities({ message, hint }: Texts): Texts {
  // The library's hint names the variable where it can help.
  if (!hint.includes(VARIABLE) || message.includes(VARIABLE)) return { message, hint };
  return { message: `${message} ${stateOf(process.env[VARIABLE])}`, hint: `${hint} ${WHERE}` };
}

/** Node warns of a file that it cannot read, and goes on without it. */
function stateOf(file: string | undefined): string {
  if (!file) return UNSET;
  try {
    accessSync(file, constants.R_OK);
    return `${file}, which ${VARIABLE} names, does not vouch for that certificate.`;
  } catch (error) {
    return `${file}, which ${VARIABLE} names, cannot be read (${(error as NodeJS.ErrnoException).code}).`;
  }
}

/** The same of an error. */
export function errorWithAuthorities(error: RelayError): RelayError {
  const { message, hint } = withAuthorities(error);
  return message === error.message
    ? error
    : new RelayError(error.code, { ...error, message, hint, cause: error.cause });
}
