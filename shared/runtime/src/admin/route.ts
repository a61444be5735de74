import type { z } from "zod";
import { validate } from "../http/validate.ts";

/** One thing that the admin listener answers. */
export interface AdminRoute {
  readonly method: "GET" | "POST";
  readonly path: string;
  /**
   * @param input the query of a GET, the JSON body of a POST; not checked.
   * @returns the answer, to be sent as JSON. @throws ServiceError, AdminError.
   */
  readonly answer: (input: unknown) => Promise<object>;
}

/** A route whose input fits a schema. */
export function adminRoute<Schema extends z.ZodType>(
  method: AdminRoute["method"],
  path: string,
  schema: Schema,
  answer: (input: z.output<Schema>) => object | Promise<object>,
): AdminRoute {
  return { method, path, answer: async (input) => await answer(validate(schema, input)) };
}
