import { STATUS_CODES } from "node:http";
import { NotReady, Problem } from "relay-protocol/contract/responses.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { LEGACY_ALIASES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import type { z } from "zod";
import { needs, REQUEST_EXAMPLES, recordedAnswers, writtenAnswers } from "./examples.ts";
import type { SchemaWriter } from "./json-schema.ts";
import { parametersOf } from "./openapi-parameters.ts";
import type { DiscoverySettings } from "./relay-description.ts";

const RATE_HEADERS = ["RateLimit", "RateLimit-Policy"];

/** Makes the operations of one OpenAPI document. */
export class OperationWriter {
  /** Error codes of all operations so far. */
  readonly codes = new Set<ErrorCode>();
  /** Parameters and answers of all operations so far, by name: each stands in the document once. */
  readonly parameters: Record<string, object> = {};
  readonly responses: Record<string, object> = {};
  readonly #schemas: SchemaWriter;
  readonly #answers: Readonly<Record<string, object>>;

  constructor(schemas: SchemaWriter, settings: DiscoverySettings) {
    this.#schemas = schemas;
    this.#answers = { ...recordedAnswers(settings), ...writtenAnswers(settings.baseUrl) };
  }

  /** The operation of a surface at its main path or at an alias, each with its own operation id. */
  write(id: SurfaceId, surface: Surface, path: string): object {
    const isAlias = path !== surface.path;
    const { summary, group, apiKey, aliases } = surface;
    const parameters = this.#parameters(surface);
    return {
      operationId: isAlias ? id + pascalCase(path) : id,
      summary: isAlias ? `Alias of ${surface.method} ${surface.path}. ${summary}` : summary,
      tags: [group],
      ...(apiKey && { security: [{ apiKey: [] }] }),
      ...(id === "newestConnector" && needs("package")),
      ...(parameters.length > 0 && { parameters }),
      ...(surface.request !== null && { requestBody: this.#requestBody(id, surface.request) }),
      responses: { ...this.#success(id, surface), ...this.#refusals(id, surface), ...this.#commonRefusals() },
      ...(LEGACY_ALIASES.includes(path) && { deprecated: true }),
      ...(isAlias ? { "x-alias-of": id } : aliases.length > 0 && { "x-aliases": aliases }),
    };
  }

  #parameters(surface: Surface): object[] {
    return parametersOf(surface, this.#schemas).map((parameter) => {
      const name = `${parameter.in}.${parameter.name}`;
      this.parameters[name] = parameter;
      return { $ref: `#/components/parameters/${name}` };
    });
  }

  #requestBody(id: SurfaceId, request: z.ZodType): object {
    const schema = this.#schemas.writeNamed(request, `${pascalCase(id)}Request`);
    return { required: true, content: { "application/json": { schema, examples: REQUEST_EXAMPLES[id] } } };
  }

  #success(id: SurfaceId, surface: Surface): object {
    const { media, status, apiKey, revalidated, response } = surface;
    const schema = this.#schemas.writeNamed(response, pascalCase(id));
    const headers = [...(apiKey ? [...RATE_HEADERS, "Idempotent-Replayed"] : []), ...(revalidated ? ["ETag"] : [])];
    return {
      [status]: this.#response(id, {
        description: STATUS_CODES[status],
        ...(headers.length > 0 && { headers: headersOf(headers) }),
        content: { [media]: { schema, examples: this.#answers[id] } },
      }),
      ...(revalidated && { 304: this.#response("notModified", NOT_MODIFIED) }),
    };
  }

  /** One answer for each status; the examples say what its codes mean. */
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
      description: STATUS_CODES[status],
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

const NOT_MODIFIED = {
  description: "The document is still the one that If-None-Match names.",
  headers: headersOf(["ETag"]),
};

function headersOf(names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** `/api/feedback` is ApiFeedback, `sendMessage` is SendMessage. */
function pascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
