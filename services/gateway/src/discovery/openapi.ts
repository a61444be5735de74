import { hash } from "node:crypto";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { Completeness, PRIVACY, ProofGate, ScopeFlags, SessionCounts } from "relay-protocol/contract/reports/common.ts";
import { GUIDE_FRAME } from "relay-protocol/contract/reports/guides.ts";
import { openLabel } from "relay-protocol/contract/requests.ts";
import { FEEDBACK_SURFACES } from "relay-protocol/contract/surfaces.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { problemOf } from "relay-runtime/http/problem.ts";
import { LINK_DOWN_ADVICE } from "relay-window/redis/link-state.ts";
import { z } from "zod";
import { EXAMPLE_TIME, exampleEnvelope } from "./example-envelopes.ts";
import { MADE_UP_IDS, NEEDS } from "./examples.ts";
import { type JsonSchema, SchemaWriter } from "./json-schema.ts";
import { CATALOGUE, type Group, urlOf, websocketUrls } from "./links.ts";
import { OperationWriter } from "./openapi-operation.ts";
import {
  API_KEY_RULE,
  DESCRIPTION,
  type DiscoverySettings,
  SCOPE_BOUNDARY,
  TITLE,
  VERSION,
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

/** What several answers have: each stands in the document once. */
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
