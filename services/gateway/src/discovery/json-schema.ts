import { isDeepStrictEqual } from "node:util";
import { z } from "zod";

export type JsonSchema = { readonly [keyword: string]: unknown };

/** Where each dialect keeps named schemas. */
const DIALECTS = { "draft-2020-12": "$defs", "draft-7": "definitions" } as const;

/** Where OpenAPI and AsyncAPI keep them. */
const COMPONENTS = "#/components/schemas/";

/**
 * Writes zod schemas as JSON Schema for one document. A schema with an id (`.meta({ id })`) becomes a component, and is
 * referenced; so is a part, by each object that has its members.
 */
export class SchemaWriter {
  readonly components: Record<string, JsonSchema> = {};
  readonly #dialect: keyof typeof DIALECTS;
  readonly #parts: Parts = {};

  /** @param parts by the names of their components. A part with the members of another comes before it. */
  constructor(dialect: keyof typeof DIALECTS, parts: Readonly<Record<string, z.ZodObject>> = {}) {
    this.#dialect = dialect;
    for (const [name, part] of Object.entries(parts)) {
      const { additionalProperties: _, ...open } = this.write(part);
      this.#parts[name] = open as unknown as ObjectSchema;
    }
    for (const [name, part] of Object.entries(this.#parts)) this.components[name] = part;
  }

  /** The schema itself, or a reference to it where it has an id. */
  write(schema: z.ZodType): JsonSchema {
    const parts = DIALECTS[this.#dialect];
    const written = z.toJSONSchema(schema, { target: this.#dialect, override: ({ jsonSchema }) => tidy(jsonSchema) });
    const text = JSON.stringify(written).replaceAll(`"$ref":"#/${parts}/`, `"$ref":"${COMPONENTS}`);
    const {
      $schema: _dialect,
      [parts]: named = {},
      ...own
    } = JSON.parse(text, (_, value) => byParts(value, this.#parts));
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

/** An object whose members are known. */
type ObjectSchema = JsonSchema & {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
};
type Parts = Record<string, ObjectSchema>;

/** A strict object with references to the parts that it has in place of their members; any other value as it is. */
function byParts(value: unknown, parts: Parts): unknown {
  if (!isStrictObject(value)) return value;
  const { properties, required, additionalProperties: _, ...rest } = value;
  const left = new Map(Object.entries(properties));
  const allOf: object[] = [];
  for (const [name, part] of Object.entries(parts)) {
    const members = Object.entries(part.properties);
    const isHere = members.every(([member, schema]) => isDeepStrictEqual(left.get(member), schema));
    if (!isHere || !part.required.every((member) => required.includes(member))) continue;
    for (const [member] of members) left.delete(member);
    allOf.push({ $ref: COMPONENTS + name });
  }
  if (allOf.length === 0) return value;
  const own = { properties: Object.fromEntries(left), required: required.filter((member) => left.has(member)) };
  return { ...rest, allOf, ...own, unevaluatedProperties: false };
}

function isStrictObject(value: unknown): value is ObjectSchema {
  const { type, properties, required, additionalProperties } = (value ?? {}) as Partial<ObjectSchema>;
  return type === "object" && properties !== undefined && Array.isArray(required) && additionalProperties === false;
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
