import type { JsonSchema, SchemaWriter } from "./json-schema.ts";

/** The moment in which all examples happen, epoch ms. */
export const EXAMPLE_TIME = 1_790_000_000_000;

/**
 * An example of a schema, the same each time: its own first example where it has one, else the plainest value that the
 * schema takes. Texts without an example are their field's name in angle brackets.
 */
export function sample(schema: JsonSchema, writer: SchemaWriter, name = "text"): unknown {
  const { $ref, examples, const: constant, enum: values, anyOf, oneOf, allOf } = schema as Keywords;
  const [type] = [(schema as Keywords).type].flat();
  if (examples !== undefined) return examples[0];
  if ($ref !== undefined) return sample(writer.resolve(schema), writer, name);
  if (constant !== undefined) return constant;
  if (values !== undefined) return values[0];
  const [choice] = anyOf ?? oneOf ?? allOf ?? [];
  if (choice !== undefined) return sample(choice, writer, name);
  if (type === "object") return sampleObject(schema as Keywords, writer);
  if (type === "array") return sampleArray(schema as Keywords, writer, name);
  if (type === "string") return schema.format === "date-time" ? new Date(EXAMPLE_TIME).toISOString() : `<${name}>`;
  if (type === "integer" || type === "number") return sampleNumber(schema as Keywords, name);
  if (type === "boolean") return true;
  return type === "null" ? null : {};
}

interface Keywords extends JsonSchema {
  readonly $ref?: string;
  /** Several for what may be null; the first is the telling one. */
  readonly type?: string | readonly string[];
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Record<string, JsonSchema>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly prefixItems?: readonly JsonSchema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
}

/** Every property, and whatever else is required: the keys of a record with a closed set of names. */
function sampleObject(
  { properties = {}, required = [], additionalProperties }: Keywords,
  writer: SchemaWriter,
): object {
  const rest = typeof additionalProperties === "object" ? additionalProperties : {};
  const names = new Set([...Object.keys(properties), ...required]);
  return Object.fromEntries([...names].map((name) => [name, sample(properties[name] ?? rest, writer, name)]));
}

function sampleArray({ items, prefixItems, minItems = 1, maxItems }: Keywords, writer: SchemaWriter, name: string) {
  if (prefixItems !== undefined) return prefixItems.map((item) => sample(item, writer, name));
  if (items === undefined || maxItems === 0) return [];
  return Array.from({ length: Math.max(1, minItems) }, () => sample(items, writer, name));
}

function sampleNumber({ minimum, exclusiveMinimum }: Keywords, name: string): number {
  if (/(?:_at|_time|^ts)$/.test(name)) return EXAMPLE_TIME;
  return minimum ?? (exclusiveMinimum === undefined ? 0 : exclusiveMinimum + 1);
}
