import { hash } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { AgentName, SessionId } from "relay-protocol/contract/envelope.ts";
import { PackageFile } from "relay-protocol/contract/packages.ts";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { Completeness, PRIVACY, ProofGate, ScopeFlags, SessionCounts } from "relay-protocol/contract/reports/common.ts";
import { GUIDE_FRAME } from "relay-protocol/contract/reports/guides.ts";
import { IDEMPOTENCY_KEY_PATTERN, openLabel } from "relay-protocol/contract/requests.ts";
import { NotReady, Problem } from "relay-protocol/contract/responses.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { FEEDBACK_SURFACES, LEGACY_ALIASES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { problemOf } from "relay-runtime/http/problem.ts";
import { LINK_DOWN_ADVICE } from "relay-window/redis/link-state.ts";
import { z } from "zod";
import {
  EXAMPLE_TIME,
  exampleEnvelope,
  MADE_UP_IDS,
  NEEDS,
  needs,
  REQUEST_EXAMPLES,
  recordedAnswers,
  writtenAnswers,
} from "./examples.ts";
import { type JsonSchema, SchemaWriter } from "./json-schema.ts";
import {
  API_KEY_RULE,
  CATALOGUE,
  DESCRIPTION,
  type DiscoverySettings,
  type Group,
  SCOPE_BOUNDARY,
  TITLE,
  urlOf,
  VERSION,
  websocketUrls,
} from "./relay-description.ts";

const TAGS: Record<Group, string> = {
  gateway: "Messages and session requests with an API key; the gateway signs.",
  presence: "Which agents are online, and the state of a session.",
  feedback: "Feedback; only counts are kept.",
  "self-test": "Check a signature before you send it.",
  diagnostics: "Reports of the process window: counts, and the last session proofs.",
  guides: "What to do next, by the counts of the window.",
  discovery: "Documents and pages that describe the relay.",
  probes: "Liveness and readiness.",
};

/** Members that several answers share. The document has each once. */
const PARTS = {
  GuideFrame: z.strictObject(GUIDE_FRAME),
  ProofGate,
  SessionCounts,
  Completeness,
  ScopeFlags,
};

/** The OpenAPI document of every HTTP surface. Source: OpenAPI 3.1.0; docs/protocol.md#versions. */
export function openApiDocument(settings: DiscoverySettings) {
  const { baseUrl } = settings;
  const schemas = new SchemaWriter("draft-2020-12", PARTS);
  const operations = new OperationWriter(schemas, settings);
  const paths: Record<string, Record<string, object>> = {};
  for (const [id, surface] of CATALOGUE) {
    for (const path of [surface.path, ...surface.aliases]) {
      paths[path] = { ...paths[path], [surface.method.toLowerCase()]: operations.write(id, surface, path) };
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: TITLE,
      version: VERSION,
      summary: DESCRIPTION,
      description: SCOPE_BOUNDARY.proof_boundary,
    },
    externalDocs: {
      description: "Step-by-step instructions for an autonomous agent.",
      url: urlOf(baseUrl, "instructions"),
    },
    servers: [{ url: baseUrl, description: "This relay." }],
    security: [],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      responses: operations.responses,
      examples: Object.fromEntries([...operations.codes].map((code) => [code, problemExample(code)])),
      schemas: { ...schemas.components, FeedbackRequest: withSurfaceLabels(schemas.components.FeedbackRequest) },
      securitySchemes: {
        apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: API_KEY_RULE },
      },
      parameters: operations.parameters,
      headers: HEADERS,
    },
    "x-examples": {
      description:
        "A request runs as its examples print it once it has what x-needs beside them names. An example of an answer is a real one of another moment: long texts and lists are cut. No relay knows made_up_ids.",
      needs: NEEDS,
      made_up_ids: MADE_UP_IDS,
    },
    "x-websocket": { urls: websocketUrls(settings), asyncapi: urlOf(baseUrl, "asyncapi") },
  } as const;
}

/** The catalogue is made of the schemas: the labels of its surfaces can only be added afterwards. */
function withSurfaceLabels(request: JsonSchema | undefined): JsonSchema {
  const { properties } = request as { properties: object };
  return { ...request, properties: { ...properties, surface: { type: "string", ...openLabel(FEEDBACK_SURFACES) } } };
}

/** Source: docs/protocol.md#http; draft-ietf-httpapi-ratelimit-headers-10. */
const HEADERS = {
  "Retry-After": {
    description: "Seconds to wait before the same request may be sent again.",
    schema: { type: "integer" },
  },
  RateLimit: {
    description: 'The remaining requests: `"default";r=29;t=60`. Absent when the key was refused.',
    schema: { type: "string" },
  },
  "RateLimit-Policy": { description: 'The limit: `"default";q=30;w=60`.', schema: { type: "string" } },
  "Idempotent-Replayed": {
    description: "Present when this repeats the first answer: nothing was sent twice.",
    schema: { type: "string", const: "true" },
  },
  ETag: {
    description: "Send it in If-None-Match to be answered 304 while the document is the same.",
    schema: { type: "string" },
  },
  Allow: { description: "The methods that this path supports.", schema: { type: "string" } },
} as const;

const NOT_READY_EXAMPLE = {
  service: "gateway",
  ready: false,
  online_agents: null,
  stale_agents: null,
  reason: "refused",
  next_action: LINK_DOWN_ADVICE.refused,
  privacy: PRIVACY,
};

const INVALID_FIELD = { field: "to", message: "must be agent://<name>" };

function problemExample(code: ErrorCode): object {
  const details = {
    ...(code === "rate_limited" && { retryAfterMs: 20_000 }),
    ...(code === "not_ready" && { members: NOT_READY_EXAMPLE }),
    ...(code === "bad_signature" && {
      members: { canonical_sha256: hash("sha256", canonicalText(exampleEnvelope("agent.register"))) },
    }),
    ...((code === "invalid_request" || code === "invalid_envelope") && { errors: [INVALID_FIELD] }),
  };
  return { summary: ERRORS[code].title, value: problemOf(new ServiceError(code, details), EXAMPLE_TIME).body };
}

const RATE_HEADERS = ["RateLimit", "RateLimit-Policy"];

/** Makes the operations of one OpenAPI document. */
class OperationWriter {
  /** Error codes of all operations so far. */
  readonly codes = new Set<ErrorCode>();
  /** Parameters and answers of all operations so far, by name. The document has each once. */
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

/** A parameter as OpenAPI has it. */
interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
}

/** The parameters of a surface: of its path, of its query, and header fields. */
function parametersOf(surface: Surface, schemas: SchemaWriter): Parameter[] {
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

/** The first example of the schema itself, or of the schema that it refers to. */
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
