import { AgentName, SessionId } from "relay-protocol/contract/envelope.ts";

import { PackageFile } from "relay-protocol/contract/packages.ts";
import { IDEMPOTENCY_KEY_PATTERN } from "relay-protocol/contract/requests.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import type { z } from "zod";
import { needs } from "./examples.ts";
import type { JsonSchema, SchemaWriter } from "./json-schema.ts";

/** A parameter as OpenAPI has it. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
}

/** The parameters of a surface: of its path, of its query, and header fields. */
export function parametersOf(surface: Surface, schemas: SchemaWriter): Parameter[] {
  return [
    ...inPath(surface, schemas),
    ...inQuery(surface, schemas),
    ...(surface.apiKey ? [IDEMPOTENCY_KEY] : []),
    ...(surface.revalidated ? [IF_NONE_MATCH] : []),
  ];
}

const PATH_PARAMETERS: Record<string, { readonly schema: z.ZodType }> = {
  session_id: { schema: SessionId, ...needs("known_session") },
  name: { schema: AgentName, ...needs("known_credential") },
  file: { schema: PackageFile, ...needs("package") },
};

function inPath({ path }: Surface, schemas: SchemaWriter): Parameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => {
    const { schema, ...needed } = PATH_PARAMETERS[name] as { schema: z.ZodType };
    const written = schemas.write(schema);
    return { name, in: "path", required: true, schema: written, ...exampleOf(written, schemas), ...needed };
  });
}

function inQuery({ query }: Surface, schemas: SchemaWriter): Parameter[] {
  if (query === null) return [];
  const { properties, required = [] } = schemas.resolve(schemas.write(query)) as {
    properties: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { examples, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
    ...exampleOf({ examples, ...schema }, schemas),
  }));
}

/** The first example: of the schema itself, else of the one that it refers to. */
function exampleOf(schema: JsonSchema, schemas: SchemaWriter): { readonly example?: unknown } {
  const examples = schema.examples ?? schemas.resolve(schema).examples;
  return Array.isArray(examples) ? { example: examples[0] } : {};
}

/** Without an example: two requests that were printed with the same key would be one. */
const IDEMPOTENCY_KEY = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Make a new one for each request. The same key with the same body returns the first answer again, and nothing is sent twice.",
  schema: { type: "string", pattern: IDEMPOTENCY_KEY_PATTERN.source },
} as const;

const IF_NONE_MATCH = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "The ETag of an earlier answer.",
  schema: { type: "string" },
} as const;
