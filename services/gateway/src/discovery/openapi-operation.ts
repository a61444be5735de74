import { SessionId } from "@agent-relay/shared/contract/envelope.ts";
import { ERRORS, type ErrorCode } from "@agent-relay/shared/contract/errors.ts";
import { IDEMPOTENCY_KEY_PATTERN } from "@agent-relay/shared/contract/requests.ts";
import { Problem } from "@agent-relay/shared/contract/responses.ts";
import type { Surface } from "@agent-relay/shared/contract/surface.ts";
import type { SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import type { z } from "zod";
import { REQUEST_EXAMPLES, responseExamples } from "./examples.ts";
import type { JsonSchema, SchemaWriter } from "./json-schema.ts";
import { sample } from "./sample.ts";

const PATH_PARAMETERS: Record<string, z.ZodType> = { session_id: SessionId };
const RATE_HEADERS = ["RateLimit", "RateLimit-Policy"];

/** Makes the operations of one OpenAPI document. */
export class OperationWriter {
  /** Codes that some operation answers with. */
  readonly codes = new Set<ErrorCode>();
  readonly #schemas: SchemaWriter;
  readonly #responseExamples: ReturnType<typeof responseExamples>;

  constructor(schemas: SchemaWriter, baseUrl: string) {
    this.#schemas = schemas;
    this.#responseExamples = responseExamples(baseUrl);
  }

  /** The operation of a surface at its main path, or at an alias, where it has an operation id of its own. */
  write(id: SurfaceId, surface: Surface, path: string): object {
    const isAlias = path !== surface.path;
    const { summary, group, apiKey, aliases } = surface;
    const parameters = this.#parameters(surface);
    return {
      operationId: isAlias ? id + pascalCase(path) : id,
      summary: isAlias ? `Alias of ${surface.path}. ${summary}` : summary,
      tags: [group],
      ...(apiKey && { security: [{ apiKey: [] }] }),
      ...(parameters.length > 0 && { parameters }),
      ...(surface.request !== null && { requestBody: this.#requestBody(id, surface.request) }),
      responses: { ...this.#success(id, surface), ...this.#refusals(id, surface), ...this.#unforeseen() },
      ...(isAlias ? { "x-alias-of": id } : aliases.length > 0 && { "x-aliases": aliases }),
    };
  }

  #parameters({ path, query, apiKey }: Surface): object[] {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
      name,
      in: "path",
      required: true,
      schema: this.#schemas.write(PATH_PARAMETERS[name] as z.ZodType),
    }));
    return [...inPath, ...this.#queryParameters(query), ...(apiKey ? [IDEMPOTENCY_KEY] : [])];
  }

  #queryParameters(query: z.ZodType | null): object[] {
    if (query === null) return [];
    const { properties, required = [] } = this.#schemas.resolve(this.#schemas.write(query)) as {
      properties: Record<string, JsonSchema>;
      required?: string[];
    };
    return Object.entries(properties).map(([name, schema]) => ({
      name,
      in: "query",
      required: required.includes(name),
      schema,
      example: sample(schema, this.#schemas, name),
    }));
  }

  #requestBody(id: SurfaceId, request: z.ZodType): object {
    const schema = this.#schemas.writeNamed(request, `${pascalCase(id)}Request`);
    const examples = REQUEST_EXAMPLES[id] ?? { sample: sample(schema, this.#schemas) };
    return { required: true, content: { "application/json": { schema, examples: valuesOf(examples) } } };
  }

  #success(id: SurfaceId, { path, response, media, status, summary, apiKey }: Surface): object {
    const schema = this.#schemas.writeNamed(response, pascalCase(id));
    const examples = this.#responseExamples[id] ?? { sample: atPath(sample(schema, this.#schemas), path) };
    return {
      [status]: {
        description: summary,
        ...(apiKey && { headers: headersOf([...RATE_HEADERS, "Idempotent-Replayed"]) }),
        content: { [media]: { schema, examples: valuesOf(examples) } },
      },
    };
  }

  /** One answer a status. A service that is not ready says so in the shape of readiness, not as a problem. */
  #refusals(id: SurfaceId, surface: Surface): object {
    if (id === "ready") return this.#notReady(surface);
    const byStatus = Object.groupBy(surface.errors, (code) => String(ERRORS[code].httpStatus));
    const answers = Object.entries(byStatus).map(([status, codes = []]) => [
      status,
      this.#refusal(Number(status), codes, surface.apiKey),
    ]);
    return Object.fromEntries(answers);
  }

  #refusal(status: number, codes: readonly ErrorCode[], apiKey: boolean): object {
    const problem = this.#schemas.write(Problem);
    const headers = [
      ...(apiKey ? RATE_HEADERS : []),
      ...(codes.some((code) => ERRORS[code].retry === "later") ? ["Retry-After"] : []),
    ];
    const ownCodes = { type: "object", properties: { status: { const: status }, code: { enum: codes } } };
    return {
      description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join(" "),
      ...(headers.length > 0 && { headers: headersOf(headers) }),
      content: {
        "application/problem+json": { schema: { allOf: [problem, ownCodes] }, examples: this.#examplesOf(codes) },
      },
    };
  }

  #notReady({ response }: Surface): object {
    const schema = this.#schemas.writeNamed(response, "Ready");
    const state = sample(schema, this.#schemas) as object;
    const example = { ...state, ok: false, ready: false, online_agents: null, stale_agents: null };
    return {
      503: {
        description: "Not ready.",
        content: { "application/json": { schema, examples: valuesOf({ not_ready: example }) } },
      },
    };
  }

  /** What the kit around every operation may answer. */
  #unforeseen(): object {
    const content = (code: ErrorCode) => ({
      "application/problem+json": { schema: this.#schemas.write(Problem), examples: this.#examplesOf([code]) },
    });
    return {
      "4XX": {
        description: "Refused before it reached this operation.",
        headers: headersOf(["Allow"]),
        content: content("method_not_allowed"),
      },
      "5XX": {
        description: "Nothing that the caller did.",
        headers: headersOf(["Retry-After"]),
        content: content("internal_error"),
      },
    };
  }

  #examplesOf(codes: readonly ErrorCode[]): object {
    for (const code of codes) this.codes.add(code);
    return Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  }
}

const IDEMPOTENCY_KEY = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "The same key with the same body gets the first answer again, and nothing is sent twice.",
  schema: { type: "string", pattern: IDEMPOTENCY_KEY_PATTERN.source },
  example: "order-7-attempt",
} as const;

/** A report names its own path. */
function atPath(example: unknown, path: string): unknown {
  return typeof example === "object" && "endpoint" in (example ?? {}) ? { ...example, endpoint: path } : example;
}

function headersOf(names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function valuesOf(examples: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
}

/** `/api/feedback` is ApiFeedback, `sendMessage` is SendMessage. */
function pascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
