import type {
  AgentManifest,
  AgentReadableHealth,
  DiscoveryIndex,
  RelayManifest,
  SimpleCapabilities,
} from "relay-protocol/contract/documents.ts";
import { announcedLimits } from "relay-protocol/contract/frames.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import type { Ready } from "relay-protocol/contract/responses.ts";
import { PROOF_BOUNDARY } from "relay-protocol/contract/session.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SIGNATURE_CHARACTERS } from "relay-protocol/signing/algorithms.ts";
import { credentialTestVector, SEALED_PAYLOAD_TEST_VECTOR, testVectors } from "relay-protocol/signing/test-vectors.ts";
import { CANONICAL_SIGNING_ORDER } from "relay-protocol/wire/envelope.ts";
import { ENVELOPE_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { z } from "zod";
import { contactOf } from "../settings.ts";
import { type Examples, MADE_UP_IDS, REQUEST_EXAMPLES, writtenAnswers } from "./examples.ts";
import {
  authenticationOf,
  DELIVERY_RULES,
  type DiscoverySettings,
  describeRelay,
  linksIn,
  offeredBy,
  PENDING_RULE,
  publishedLimits,
  RETRY_RULES,
  SCOPE_BOUNDARY,
  SERVICE,
  urlOf,
  VERSION,
  websocketUrls,
} from "./relay-description.ts";

/** Without the keys of live gateways, which change. Source: docs/protocol.md#signatures. */
export function signingManifest(settings: DiscoverySettings) {
  return {
    ok: true,
    service: SERVICE,
    canonical_signing_order: CANONICAL_SIGNING_ORDER,
    canonicalization:
      "RFC 8785 for every value; members in canonical_signing_order; without absent fields; without sig",
    algorithms: (["ed25519", "hmac-sha256"] as const).map((alg) => ({
      alg,
      sig_characters: SIGNATURE_CHARACTERS[alg],
    })),
    encoding: "base64url",
    max_clock_skew_ms: ENVELOPE_LIMITS.maxClockSkewMs,
    websocket: { urls: websocketUrls(settings), limits: announcedLimits(settings) },
    test_vectors: testVectors(),
    credential_test_vector: credentialTestVector(),
    sealed_payload_test_vector: SEALED_PAYLOAD_TEST_VECTOR,
    self_test: { method: "POST", url: urlOf(settings.baseUrl, "selfTest") },
    contact: contactOf(settings.contact),
  } as const;
}

export function relayManifest(settings: DiscoverySettings): RelayManifest {
  const websocket = { urls: websocketUrls(settings), limits: announcedLimits(settings) };
  return { ok: true, service: SERVICE, websocket, ...describeRelay(settings) };
}

/** The members of agent.json in addition to the signing manifest. */
export function agentManifestExtras(settings: DiscoverySettings) {
  const { baseUrl } = settings;
  return {
    ...describeRelay(settings),
    is_a2a_agent_card: false,
    note: "This is not an A2A agent card: the relay is a broker, not an agent. It is the signing manifest with further members.",
    openapi: urlOf(baseUrl, "openapi"),
    asyncapi: urlOf(baseUrl, "asyncapi"),
    instructions: urlOf(baseUrl, "instructions"),
    relay_manifest: urlOf(baseUrl, "relayManifest"),
    readiness: linksIn(["probes", "presence", "diagnostics"], baseUrl),
    handoff: linksIn(["guides"], baseUrl),
  } as const satisfies Omit<AgentManifest, keyof ReturnType<typeof signingManifest> | "gateway_keys" | "issuers">;
}

const TEMPLATES = "A path or url with {braces} is a template (RFC 6570): put the value in their place.";

export function discoveryIndex(settings: DiscoverySettings): DiscoveryIndex {
  const { baseUrl } = settings;
  const groups: DiscoveryIndex["groups"] = {};
  for (const [id, surface] of offeredBy(settings)) {
    const { method, path, aliases, summary, media, apiKey, status, errors, group } = surface;
    groups[group] ??= [];
    groups[group].push({
      operation_id: id,
      method,
      path,
      url: baseUrl + path,
      aliases: [...aliases],
      summary,
      media,
      api_key_required: apiKey,
      success_status: status,
      error_codes: [...errors],
    });
  }
  return {
    ok: true,
    service: SERVICE,
    version: VERSION,
    base_url: baseUrl,
    start_here: urlOf(baseUrl, "instructions"),
    templates: TEMPLATES,
    groups,
    websocket: { urls: websocketUrls(settings), asyncapi: urlOf(baseUrl, "asyncapi") },
  };
}

/** What a caller with an API key can do, and the counters that each acceptance increments. */
const CAPABILITIES = [
  { type: "message.send", id: "sendMessage", counters: ["traffic.simple_send.accepted", "published_envelopes"] },
  {
    type: "session.request",
    id: "requestSession",
    counters: [
      "traffic.simple_session_request.accepted",
      "traffic.simple_session_request.accepted_to_online_target",
      "simple_session_request_accepted_to_offline_target",
      "published_envelopes",
    ],
  },
] as const;

export function simpleCapabilities(settings: DiscoverySettings): SimpleCapabilities {
  const { baseUrl } = settings;
  const answers = writtenAnswers(baseUrl);
  return {
    ok: true,
    service: SERVICE,
    version: VERSION,
    endpoint: SURFACES.simpleCapabilities.path,
    authentication: authenticationOf(settings),
    capabilities: CAPABILITIES.map(({ type, id, counters }) => ({
      type,
      operation_id: id,
      summary: SURFACES[id].summary,
      method: "POST",
      url: urlOf(baseUrl, id),
      ready_to_run: false,
      missing: ["x-api-key"],
      headers: { "content-type": "application/json" },
      optional_headers: ["idempotency-key"],
      request_example: firstOf(REQUEST_EXAMPLES[id]),
      request_schema: `${urlOf(baseUrl, "openapi")}#/components/schemas/${SURFACES[id].request?.meta()?.id}`,
      success_status: 202,
      response_example: firstOf(answers[id]),
      error_codes: [...SURFACES[id].errors],
      counters: [...counters],
    })),
    made_up_ids: MADE_UP_IDS,
    delivery: [...DELIVERY_RULES, PENDING_RULE],
    retries: RETRY_RULES,
    limits: publishedLimits(settings),
    scope_boundary: SCOPE_BOUNDARY,
    privacy: PRIVACY,
  };
}

function firstOf(examples: Examples | undefined): Record<string, unknown> {
  return { ...Object.values(examples ?? {})[0]?.value };
}

const STALE_AFTER_SECONDS = PRESENCE_LIMITS.staleAfterMs / 1000;

const MEANING = {
  status: "The process runs. This says nothing about connectors or the delivery of envelopes.",
  ready: "True when the relay reaches Redis and can accept envelopes. While false, wait; a restart does not help.",
  online_agents: `Agents with a live connection and a signed heartbeat within ${STALE_AFTER_SECONDS} seconds. If 0, connect one or wait for your target.`,
  stale_agents: "Agents whose connection is closed or silent; session requests to them stay pending.",
  not_proven: `A healthy relay does not prove a session. ${PROOF_BOUNDARY}`,
};

/** The live state, and what it means for an agent. */
export function agentReadableHealth(
  state: z.infer<typeof Ready>,
  baseUrl: string,
): z.infer<typeof AgentReadableHealth> {
  const { ready, online_agents, stale_agents, next_action } = state;
  return {
    ok: true,
    service: SERVICE,
    status: "healthy",
    ready,
    online_agents,
    stale_agents,
    next_action,
    meaning: MEANING,
    links: linksIn(["probes", "presence"], baseUrl),
    privacy: PRIVACY,
  };
}
