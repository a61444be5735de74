import { z } from "zod";

export type JsonSchema = { readonly [keyword: string]: unknown };

/** Where each dialect keeps named schemas. */
const DIALECTS = { "draft-2020-12": "$defs", "draft-7": "definitions" } as const;

/** Where OpenAPI and AsyncAPI keep them. */
const COMPONENTS = "#/components/schemas/";

/**
 * Writes zod schemas as JSON Schema for one document. A schema with an id (`.meta({ id })`) becomes a component, and is
 * referenced.
 */
export class SchemaWriter {
  readonly components: Record<string, JsonSchema> = {};
  readonly #dialect: keyof typeof DIALECTS;

  constructor(dialect: keyof typeof DIALECTS) {
    this.#dialect = dialect;
  }

  /** The schema itself, or a reference to it where it has an id. */
  write(schema: z.ZodType): JsonSchema {
    const parts = DIALECTS[this.#dialect];
    const written = z.toJSONSchema(schema, { target: this.#dialect, override: ({ jsonSchema }) => tidy(jsonSchema) });
    const text = JSON.stringify(written).replaceAll(`"$ref":"#/${parts}/`, `"$ref":"${COMPONENTS}`);
    const { $schema: _dialect, [parts]: named = {}, ...own } = JSON.parse(text);
    Object.assign(this.components, named);
    return own;
  }

  /** As `write`, but a schema without an id becomes the component `name`, so that generated clients have a type name. */
  writeNamed(schema: z.ZodType, name: string): JsonSchema {
    const written = this.write(schema);
    if ("$ref" in written) return written;
    this.components[name] = written;
    return { $ref: `${COMPONENTS}${name}` };
  }

  /** The schema behind a reference. */
  resolve(schema: JsonSchema): JsonSchema {
    const { $ref } = schema;
    return typeof $ref === "string" ? (this.components[$ref.slice(COMPONENTS.length)] as JsonSchema) : schema;
  }
}

/**
 * Removes bounds that every JSON integer has, and patterns that repeat `format`. Writes a record with a closed set of names
 * as an object with these properties, so that generated clients know them.
 */
function tidy(schema: Record<string, unknown>): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.format === "date-time") delete schema.pattern;
  const { propertyNames, additionalProperties } = schema as { propertyNames?: { enum?: string[] } } & JsonSchema;
  if (propertyNames === undefined) return;
  delete schema.propertyNames;
  if (propertyNames.enum === undefined) return;
  schema.properties = Object.fromEntries(propertyNames.enum.map((name) => [name, additionalProperties]));
  schema.additionalProperties = false;
}
