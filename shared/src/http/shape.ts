import type { z } from "zod";
import { RelayError } from "../contract/errors.ts";
import { fieldErrors } from "../intake/field-errors.ts";

/**
 * Checks what a client sent against a schema.
 * @throws RelayError `invalid_request` with the fields at fault; neither values nor names that the client made up are
 * in it.
 */
export function parseShape<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (!result.success) throw new RelayError("invalid_request", { errors: fieldErrors(result.error) });
  return result.data;
}
