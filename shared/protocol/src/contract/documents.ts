import { z } from "zod";
import { AnnouncedLimits } from "./frames.ts";
import { EconomicOperability, Privacy, ScopeFlags } from "./reports/common.ts";
import { Contact, SigningManifest } from "./responses.ts";

/** Schemas of the discovery documents. Source: docs/protocol.md#discovery. */

const service = z.literal("agent-relay");
/** URLs by operation id. */
const Links = z.record(z.string(), z.string());

/** All limits for clients, with the values of this relay. Source: docs/protocol.md#limits. */
export const PublishedLimits = z
  .strictObject({
    body_max_bytes: z.int(),
    gateway_requests_per_minute: z
      .int()
      .meta({ description: "For each API key, on each of the two gateway endpoints." }),
    failed_keys_per_minute: z.int().meta({ description: "For each client address." }),
    public_requests_per_minute: z.int().meta({ description: "For each client address and surface; 0 = no limit." }),
    idempotency_key_max_characters: z.int(),
    idempotency_window_ms: z.int(),
    message_max_characters: z.int(),
    purpose_max_characters: z.int(),
    intro_max_characters: z.int(),
    scope_max_characters: z.int(),
    expected_frequency_max_characters: z.int(),
    ttl_minutes_min: z.int(),
    ttl_minutes_max: z.int(),
    ttl_minutes_default: z.int(),
    max_payload_depth: z.int(),
    max_payload_members: z.int().meta({ description: "Members and array elements in total, at any depth." }),
    ...AnnouncedLimits.shape,
    offline_after_ms: z.int(),
    stability_hold_ms: z.int(),
    proof_freshness_window_ms: z.int(),
    retained_proofs: z.int(),
    max_pending_sessions_per_target: z.int().meta({
      description: "A newer one is accepted, and the oldest of the key with the most there gives way: it is expired.",
    }),
    max_pending_sessions_per_requester_at_target: z.int().meta({
      description: "A newer one is accepted, and the requester's oldest there gives way: it is expired.",
    }),
    max_pending_sessions_per_key: z.int().meta({
      description: "Over all targets; an agent of an issuer may have fewer. A newer one is refused: rate_limited.",
    }),
    sessions_opened_per_minute: z
      .int()
      .meta({ description: "By one requester; a newer one is refused: rate_limited." }),
    sessions_opened_per_minute_per_key: z
      .int()
      .meta({ description: "By all requesters of one key; a newer one is refused: rate_limited." }),
    session_kept_after_end_ms: z.int(),
  })
  .meta({ id: "PublishedLimits" });
export type PublishedLimits = z.infer<typeof PublishedLimits>;

/** Ways in which a client authenticates. */
export const Authentication = z
  .strictObject({
    gateway: z.strictObject({
      type: z.literal("apiKey"),
      in: z.literal("header"),
      name: z.literal("x-api-key"),
      rule: z.string(),
      without_a_key: z.string(),
    }),
    websocket: z.string(),
    everything_else: z.string(),
  })
  .meta({ id: "Authentication" });
export type Authentication = z.infer<typeof Authentication>;

/** Tasks outside the relay's scope. */
const ScopeBoundary = EconomicOperability.extend({ proof_boundary: z.string() }).meta({ id: "ScopeBoundary" });

const about = {
  version: z.string(),
  description: z.string(),
  base_url: z.string(),
  authentication: Authentication,
  limits: PublishedLimits,
  contact: Contact,
  scope_boundary: ScopeBoundary,
  ...ScopeFlags.shape,
  privacy: Privacy,
  links: Links.meta({ description: "Every surface that can be read without parameters, by operation id." }),
  link_templates: Links.meta({ description: "RFC 6570 templates of the surfaces that need a parameter." }),
};

/** GET /.well-known/relay-manifest.json. */
export const RelayManifest = z
  .strictObject({ ok: z.literal(true), service, websocket: SigningManifest.shape.websocket, ...about })
  .meta({ id: "RelayManifest" });
export type RelayManifest = z.infer<typeof RelayManifest>;

/** GET /.well-known/agent.json: the signing manifest with additional members. */
export const AgentManifest = SigningManifest.extend({
  ...about,
  is_a2a_agent_card: z.literal(false),
  note: z.string(),
  openapi: z.string(),
  asyncapi: z.string(),
  instructions: z.string(),
  relay_manifest: z.string(),
  readiness: Links,
  handoff: Links,
}).meta({ id: "AgentManifest" });
export type AgentManifest = z.infer<typeof AgentManifest>;

const SurfaceEntry = z.strictObject({
  operation_id: z.string(),
  method: z.enum(["GET", "POST"]),
  path: z.string(),
  url: z.string(),
  aliases: z.array(z.string()),
  summary: z.string(),
  media: z.string(),
  api_key_required: z.boolean(),
  success_status: z.int(),
  error_codes: z.array(z.string()),
});

/** GET /API/discovery: every surface of the catalogue, by group. */
export const DiscoveryIndex = z
  .strictObject({
    ok: z.literal(true),
    service,
    version: z.string(),
    base_url: z.string(),
    start_here: z.string(),
    templates: z.string().meta({ description: "How to read a path or url with braces." }),
    groups: z.record(z.string(), z.array(SurfaceEntry)),
    websocket: z.strictObject({ urls: z.array(z.string()), asyncapi: z.string() }),
  })
  .meta({ id: "DiscoveryIndex" });
export type DiscoveryIndex = z.infer<typeof DiscoveryIndex>;

const Capability = z.strictObject({
  type: z.string(),
  operation_id: z.string(),
  summary: z.string(),
  method: z.literal("POST"),
  url: z.string(),
  ready_to_run: z.literal(false),
  missing: z.array(z.string()).meta({ description: "Headers that only you can fill in; with them the request runs." }),
  headers: z.record(z.string(), z.string()),
  optional_headers: z.array(z.string()),
  request_example: z.looseObject({}),
  request_schema: z.string(),
  success_status: z.literal(202),
  response_example: z.looseObject({}),
  error_codes: z.array(z.string()),
  counters: z.array(z.string()),
});

/** GET /v1/simple-capabilities. */
export const SimpleCapabilities = z
  .strictObject({
    ok: z.literal(true),
    service,
    version: z.string(),
    endpoint: z.string(),
    authentication: Authentication,
    capabilities: z.array(Capability),
    made_up_ids: z.array(z.string()).meta({ description: "Ids of the examples, which no relay knows." }),
    delivery: z.array(z.string()).meta({ description: "What acceptance means and what it does not mean." }),
    retries: z.array(z.string()).meta({ description: "How to repeat a request." }),
    limits: PublishedLimits,
    scope_boundary: ScopeBoundary,
    privacy: Privacy,
  })
  .meta({ id: "SimpleCapabilities" });
export type SimpleCapabilities = z.infer<typeof SimpleCapabilities>;

/** GET /health.agent_readable: the live state, with advice for an agent. */
export const AgentReadableHealth = z
  .strictObject({
    ok: z.literal(true),
    service,
    status: z.literal("healthy"),
    ready: z.boolean(),
    online_agents: z.int().nullable().meta({ description: "Null while Redis is not reachable." }),
    stale_agents: z.int().nullable(),
    next_action: z.string(),
    meaning: z.strictObject({
      status: z.string(),
      ready: z.string(),
      online_agents: z.string(),
      stale_agents: z.string(),
      not_proven: z.string(),
    }),
    links: Links,
    privacy: Privacy,
  })
  .meta({ id: "AgentReadableHealth" });

const information = z.looseObject({ title: z.string(), version: z.string() });

/** GET /openapi.json. */
export const OpenApiDocument = z
  .looseObject({ openapi: z.literal("3.1.0"), info: information, paths: z.looseObject({}) })
  .meta({ id: "OpenApiDocument" });

/** GET /asyncapi.json. */
export const AsyncApiDocument = z
  .looseObject({ asyncapi: z.literal("3.0.0"), info: information, channels: z.looseObject({}) })
  .meta({ id: "AsyncApiDocument" });

/** GET /llms.txt. */
export const Instructions = z.string();
/** GET /examples/agent.mjs. */
export const AgentProgram = z.string();
/** GET /.well-known/security.txt. Source: RFC 9116. */
export const SecurityText = z.string();
export const RobotsText = z.string();
export const Sitemap = z.string();
