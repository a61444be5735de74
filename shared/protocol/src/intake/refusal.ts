import { AGENT_ID_PATTERN } from "../contract/agent-id.ts";
import { ENVELOPE_ID_PATTERN } from "../contract/envelope.ts";
import type { ErrorCode, FieldError } from "../contract/errors.ts";

/** Why an envelope was refused, the same for websocket and self-test. Of the envelope it holds nothing but ids and a digest. */
export interface Refusal {
  readonly code: ErrorCode;
  /** One more sentence than the code has. */
  readonly detail?: string;
  /** The envelope's id, when it could be read. */
  readonly envelopeId?: string;
  readonly errors?: readonly FieldError[];
  /** Of bad_signature: hex SHA-256 of the text that the signature was checked over. */
  readonly canonicalSha256?: string;
  /** The sender that the envelope names, when it could be read; whoever sent it. */
  readonly from?: string;
  /** Of unknown_key: a register may bring the key, with its credential. */
  readonly isOfCredential?: true;
  /** The key, once the signature was verified: then its holder sent the envelope. */
  readonly signer?: { readonly keyId: string; readonly issuer?: string | undefined };
}

/** A refusal of `value`; with its id and its sender where they are valid. */
export function refuse(
  code: ErrorCode,
  value: unknown,
  why: Omit<Refusal, "code" | "envelopeId" | "from"> = {},
): Refusal {
  const { id, from } = membersOf(value);
  return {
    code,
    ...(isText(id, ENVELOPE_ID_PATTERN) && { envelopeId: id }),
    ...(isText(from, AGENT_ID_PATTERN) && { from }),
    ...why,
  };
}

/** Distinguishes a refusal from the result of a step. */
export function isRefusal(result: object): result is Refusal {
  return "code" in result;
}

function membersOf(value: unknown): { readonly id?: unknown; readonly from?: unknown } {
  return typeof value === "object" && value !== null ? value : {};
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}
