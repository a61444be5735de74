import { ERRORS, type ErrorCode, RelayError } from "@agent-relay/shared/contract/errors.ts";
import { problemOf } from "@agent-relay/shared/http/problem.ts";
import { AUTHENTICATION, DESCRIPTION, type DiscoverySettings, SCOPE_BOUNDARY, TITLE, VERSION } from "./about.ts";
import { SchemaWriter } from "./json-schema.ts";
import { CATALOGUE, type Group, urlOf, websocketUrls } from "./links.ts";
import { OperationWriter } from "./openapi-operation.ts";
import { EXAMPLE_TIME } from "./sample.ts";

const TAGS: Record<Group, string> = {
  gateway: "Send and request with an API key; the gateway signs.",
  presence: "Who is online, and what became of a session.",
  feedback: "Feedback, of which only counts are kept.",
  "self-test": "Check a signature before it counts.",
  diagnostics: "Reports of the process window: aggregates only.",
  guides: "What to do next, from the figures of the window.",
  discovery: "Documents by which people and agents find their way.",
  probes: "Is it up, can it work.",
};

/** The OpenAPI document of every HTTP surface. Source: OpenAPI 3.1.0; the contract, "Versioning". */
export function openApiDocument(settings: DiscoverySettings) {
  const { baseUrl } = settings;
  const schemas = new SchemaWriter("draft-2020-12");
  const operations = new OperationWriter(schemas, baseUrl);
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
    externalDocs: { description: "A worked path for an autonomous agent.", url: urlOf(baseUrl, "instructions") },
    servers: [{ url: baseUrl, description: "This relay." }],
    security: [],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: schemas.components,
      securitySchemes: {
        apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: AUTHENTICATION.gateway.rule },
      },
      headers: HEADERS,
      examples: Object.fromEntries([...operations.codes].map((code) => [code, problemExample(code)])),
    },
    "x-websocket": { urls: websocketUrls(settings), asyncapi: urlOf(baseUrl, "asyncapi") },
  } as const;
}

/** Source: protocol, section 9; draft-ietf-httpapi-ratelimit-headers-10. */
const HEADERS = {
  "Retry-After": {
    description: "Seconds to wait before the same request may be sent again.",
    schema: { type: "integer" },
  },
  RateLimit: {
    description: 'What is left: `"default";r=29;t=60`. Absent when the key was refused.',
    schema: { type: "string" },
  },
  "RateLimit-Policy": { description: 'The limit: `"default";q=30;w=60`.', schema: { type: "string" } },
  "Idempotent-Replayed": {
    description: "Present when this is the first answer again: nothing was sent twice.",
    schema: { type: "string", const: "true" },
  },
  Allow: { description: "The methods that this path takes.", schema: { type: "string" } },
} as const;

function problemExample(code: ErrorCode): object {
  const details = {
    ...(code === "rate_limited" && { retryAfterMs: 20_000 }),
    ...(code === "invalid_request" && { errors: [{ field: "to", message: "must be agent://<name>" }] }),
  };
  return { summary: ERRORS[code].title, value: problemOf(new RelayError(code, details), EXAMPLE_TIME).body };
}
