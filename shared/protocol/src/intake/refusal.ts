import { ENVELOPE_ID_PATTERN } from "../contract/envelope.ts";
import type { ErrorCode, FieldError } from "../contract/errors.ts";

/** Why an envelope was refused, the same for websocket and self-test. Of the envelope it holds nothing but ids and a digest. */
export interface Refusal {
  readonly code: ErrorCode;
  /** One more sentence than the code has. */
  readonly detail?: string;
  /** In place of the code's. */
  readonly hint?: string;
  /** The envelope's id, when it could be read. */
  readonly envelopeId?: string;
  readonly errors?: readonly FieldError[];
  /** Of bad_signature: hex SHA-256 of the text that the signature was checked over. */
  readonly canonicalSha256?: string;
  /** Of unknown_key and key_not_allowed: the sender that the envelope names, where it is an agent id. */
  readonly from?: string;
  /** Of unknown_key: the key, where a register may bring it with its credential. */
  readonly credentialKey?: string;
  /** The key, once the signature was verified: then its holder sent the envelope. */
  readonly signer?: { readonly keyId: string; readonly issuer?: string | undefined };
}

/** A refusal of `value`; with its id where that is a valid envelope id. */
export function refuse(code: ErrorCode, value: unknown, why: Omit<Refusal, "code" | "envelopeId"> = {}): Refusal {
  const envelopeId = readableId(value);
  return envelopeId === undefined ? { code, ...why } : { code, envelopeId, ...why };
}

/** Distinguishes a refusal from the result of a step. */
export function isRefusal(result: object): result is Refusal {
  return "code" in result;
}

function readableId(value: unknown): string | undefined {
  const id: unknown = typeof value === "object" && value !== null && "id" in value ? value.id : undefined;
  return typeof id === "string" && ENVELOPE_ID_PATTERN.test(id) ? id : undefined;
}
