import { ENVELOPE_ID_PATTERN } from "../contract/envelope.ts";
import type { ErrorCode, FieldError } from "../contract/errors.ts";

/** Why an envelope was refused, the same for the websocket and the self-test. Nothing in it comes from the envelope but its id. */
export interface Refusal {
  readonly code: ErrorCode;
  /** One sentence more than the code says. */
  readonly detail?: string;
  /** The envelope's id, when it could be read. */
  readonly envelopeId?: string;
  readonly errors?: readonly FieldError[];
}

/** A refusal of `value`, named by its id when that has the form of an envelope id. */
export function refuse(code: ErrorCode, value: unknown, why: Pick<Refusal, "detail" | "errors"> = {}): Refusal {
  const envelopeId = readableId(value);
  return envelopeId === undefined ? { code, ...why } : { code, envelopeId, ...why };
}

/** Tells a refusal from what a step hands on. */
export function isRefusal(result: object): result is Refusal {
  return "code" in result;
}

function readableId(value: unknown): string | undefined {
  const id: unknown = typeof value === "object" && value !== null && "id" in value ? value.id : undefined;
  return typeof id === "string" && ENVELOPE_ID_PATTERN.test(id) ? id : undefined;
}
