import type { z } from "zod";
import type { FieldError } from "../contract/errors.ts";

/**
 * What did not pass, for an answer or a log: names of the schema and rules only, never a value or a name that came
 * from outside.
 */
export function fieldErrors(error: z.ZodError): FieldError[] {
  return error.issues.map((issue) => {
    const path = issue.path.map(String);
    if (issue.code === "unrecognized_keys")
      return { field: [...path, "unknown field"].join("."), message: "not allowed" };
    return { field: path.join(".") || "(root)", message: issue.message };
  });
}
