import { z } from "zod";

/** A line for each field that is missing or wrong. No value is in it: one may be a secret. */
export function fieldProblems(value: unknown, { issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `  ${problemOf(value, path, message)}`).join("\n");
}

function problemOf(value: unknown, path: readonly PropertyKey[], message: string): string {
  const field = z.core.toDotPath(path);
  if (path.length > 0 && memberAt(value, path) === undefined) return `${field} is missing.`;
  const problem = message.replace(/^Invalid (?:input|string): /, "");
  return `${field || "the whole"}: ${problem}.`;
}

function memberAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((at, name) => (at as Record<PropertyKey, unknown> | null | undefined)?.[name], value);
}
