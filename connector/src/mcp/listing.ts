import type { ListToolsResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { Tool } from "./tool.ts";

type Schema = z.core.JSONSchema.BaseSchema;
type Listed = ListToolsResult["tools"][number];

/**
 * What tools/list answers. It stands in every conversation of a model, used or not, and is therefore kept short: of results it
 * names the members, and which of them are lists or objects, and it says nothing that MCP takes for granted.
 */
export function listing(tools: readonly Tool<z.ZodObject, z.ZodObject>[]): ListToolsResult {
  return { tools: tools.map(listed) };
}

function listed({ name, title, description, input, output, annotations }: Tool<z.ZodObject, z.ZodObject>): Listed {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: "input" });
  const { properties = {} } = z.toJSONSchema(output);
  const members = Object.entries(properties).map(([member, schema]) => [member, outlined(schema as Schema)]);
  const outputSchema = { type: "object", properties: Object.fromEntries(members) };
  return { name, title, description, inputSchema, outputSchema, annotations } as Listed;
}

function outlined({ type, description, items }: Schema): Schema {
  return {
    ...((type === "array" || type === "object") && { type }),
    ...(description && { description }),
    ...(items && { items: namesIn(items as Schema) }),
  };
}

/** Of what a list holds: the members. */
function namesIn({ properties = {} }: Schema): Schema {
  return { properties: Object.fromEntries(Object.keys(properties).map((member) => [member, {}])) };
}
