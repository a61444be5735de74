import { SessionId } from "protocol/contract/envelope.ts";
import { ERRORS, type ErrorCode } from "protocol/contract/errors.ts";
import { PackageFile } from "protocol/contract/packages.ts";
import { IDEMPOTENCY_KEY_PATTERN } from "protocol/contract/requests.ts";
import { NotReady, Problem } from "protocol/contract/responses.ts";
import type { Surface } from "protocol/contract/surface.ts";
import { LEGACY_ALIASES, type SurfaceId } from "protocol/contract/surfaces.ts";
import type { z } from "zod";
import { REQUEST_EXAMPLES, responseExamples } from "./examples.ts";
import type { JsonSchema, SchemaWriter } from "./json-schema.ts";

const PATH_PARAMETERS: Record<string, z.ZodType> = { session_id: SessionId, file: PackageFile };
const RATE_HEADERS = ["RateLimit", "RateLimit-Policy"];

/** Makes the operations of one OpenAPI document. */
export class OperationWriter {
  /** Error codes of all operations so far. */
  readonly codes = new Set<ErrorCode>();
  /** Parameters and answers of all operations so far, by name: each stands in the document once. */
  readonly parameters: Record<string, object> = {};
  readonly responses: Record<string, object> = {};
  readonly #schemas: SchemaWriter;
  readonly #baseUrl: string;
  readonly #responseExamples: ReturnType<typeof responseExamples>;

  constructor(schemas: SchemaWriter, baseUrl: string) {
    this.#schemas = schemas;
    this.#baseUrl = baseUrl;
    this.#responseExamples = responseExamples(baseUrl);
  }

  /** The operation of a surface at its main path or at an alias, each with its own operation id. */
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
      responses: { ...this.#success(id, surface), ...this.#refusals(id, surface), ...this.#commonRefusals() },
      ...(LEGACY_ALIASES.includes(path) && { deprecated: true }),
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
    const all = [...inPath, ...this.#queryParameters(query), ...(apiKey ? [IDEMPOTENCY_KEY] : [])];
    return all.map((parameter) => {
      const name = `${parameter.in}.${parameter.name}`;
      this.parameters[name] = parameter;
      return { $ref: `#/components/parameters/${name}` };
    });
  }

  #queryParameters(query: z.ZodType | null) {
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
      ...exampleOf(this.#schemas.resolve(schema)),
    }));
  }

  #requestBody(id: SurfaceId, request: z.ZodType): object {
    const schema = this.#schemas.writeNamed(request, `${pascalCase(id)}Request`);
    return { required: true, content: { "application/json": { schema, examples: REQUEST_EXAMPLES[id] } } };
  }

  #success(id: SurfaceId, surface: Surface): object {
    const { media, status, summary, apiKey, response } = surface;
    const schema = this.#schemas.writeNamed(response, pascalCase(id));
    return {
      [status]: this.#response(id, {
        description: summary,
        ...(apiKey && { headers: headersOf([...RATE_HEADERS, "Idempotent-Replayed"]) }),
        content: { [media]: { schema, examples: this.#answerExample(id, surface) } },
      }),
    };
  }

  /** A written example, or else the address of the live answer: a made-up report would say nothing true. */
  #answerExample(id: SurfaceId, { path, response, media }: Surface): object {
    const written = this.#responseExamples[id];
    if (written !== undefined) return written;
    if (media === "application/json") return { live: { externalValue: this.#baseUrl + path } };
    return { start: { value: exampleOf(this.#schemas.write(response)).example } };
  }

  /** One answer for each status. */
  #refusals(id: SurfaceId, surface: Surface): object {
    const byStatus = Object.groupBy(surface.errors, (code) => String(ERRORS[code].httpStatus));
    const answers = Object.entries(byStatus).map(([status, codes = []]) => [
      status,
      this.#refusal(Number(status), codes, surface.apiKey, id === "ready" ? NotReady : Problem),
    ]);
    return Object.fromEntries(answers);
  }

  #refusal(status: number, codes: readonly ErrorCode[], apiKey: boolean, schema: z.ZodType): object {
    const problem = this.#schemas.write(schema);
    const headers = [
      ...(apiKey ? RATE_HEADERS : []),
      ...(codes.some((code) => ERRORS[code].retry === "later") ? ["Retry-After"] : []),
    ];
    const ownCodes = { type: "object", properties: { status: { const: status }, code: { enum: codes } } };
    return this.#response([...codes, ...(apiKey ? ["x-api-key"] : [])].join("."), {
      description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join(" "),
      ...(headers.length > 0 && { headers: headersOf(headers) }),
      content: {
        "application/problem+json": { schema: { allOf: [problem, ownCodes] }, examples: this.#examplesOf(codes) },
      },
    });
  }

  /** Answers that every operation can give. */
  #commonRefusals(): object {
    const content = (code: ErrorCode) => ({
      "application/problem+json": { schema: this.#schemas.write(Problem), examples: this.#examplesOf([code]) },
    });
    return {
      "4XX": this.#response("4XX", {
        description: "The request was refused before it reached this operation.",
        headers: headersOf(["Allow"]),
        content: content("method_not_allowed"),
      }),
      "5XX": this.#response("5XX", {
        description: "An error of the relay, not of the request.",
        headers: headersOf(["Retry-After"]),
        content: content("internal_error"),
      }),
    };
  }

  #response(name: string, response: object): object {
    this.responses[name] = response;
    return { $ref: `#/components/responses/${name}` };
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
  description:
    "Make a new one for each request. The same key with the same body returns the first answer again, and nothing is sent twice.",
  schema: { type: "string", pattern: IDEMPOTENCY_KEY_PATTERN.source },
} as const;

/** The example of a schema: its first, or its only value. */
function exampleOf({ examples, const: only }: JsonSchema): { readonly example?: unknown } {
  const example = Array.isArray(examples) ? examples[0] : only;
  return example === undefined ? {} : { example };
}

function headersOf(names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** `/api/feedback` is ApiFeedback, `sendMessage` is SendMessage. */
function pascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
