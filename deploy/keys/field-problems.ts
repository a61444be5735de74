import { z } from "zod";

const MOST = 16;
/** What may be a misspelled name. A secret in the place of a name is longer. */
const PLAIN_NAME = /^\w{1,32}$/;

/** A line for each field that is missing or wrong, for the first of them. No value is in it: one may be a secret. */
export function fieldProblems(value: unknown, { issues }: z.ZodError): string {
  const lines = issues.slice(0, MOST).map((issue) => `  ${problemOf(value, issue)}`);
  const more = issues.length - lines.length;
  return [...lines, ...(more > 0 ? [`  ${more} more are not shown.`] : [])].join("\n");
}

function problemOf(value: unknown, issue: z.core.$ZodIssue): string {
  const { path } = issue;
  const field = z.core.toDotPath(path);
  if (path.length > 0 && memberAt(value, path) === undefined) return `${field} is missing.`;
  const problem = messageOf(issue).replace(/^Invalid (?:input|string): /, "");
  return `${field || "the whole"}: ${problem}.`;
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== "unrecognized_keys") return issue.message;
  const shown = issue.keys.filter((name) => PLAIN_NAME.test(name)).slice(0, MOST);
  const hidden = issue.keys.length - shown.length;
  const names = shown.map((name) => `"${name}"`);
  return `unknown names: ${[...names, ...(hidden > 0 ? [`${hidden} not shown`] : [])].join(", ")}`;
}

function memberAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((at, name) => (at as Record<PropertyKey, unknown> | null | undefined)?.[name], value);
}
