import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { IN_PLAIN_WORDS, namedFieldErrors } from "relay-protocol/intake/refusal.ts";
import type { z } from "zod";

/**
 * The value that a client sent, as the schema outputs it.
 * @throws ServiceError `invalid_request` with the invalid fields, unknown ones by name; it holds no value.
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value, IN_PLAIN_WORDS);
  if (!result.success) throw new ServiceError("invalid_request", { errors: namedFieldErrors(result.error) });
  return result.data;
}
