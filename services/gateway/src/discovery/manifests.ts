import type {
  AgentManifest,
  DiscoveryIndex,
  RelayManifest,
  SimpleCapabilities,
} from "@agent-relay/shared/contract/documents.ts";
import { CANONICAL_SIGNING_ORDER } from "@agent-relay/shared/contract/envelope.ts";
import { ANNOUNCED_LIMITS } from "@agent-relay/shared/contract/frames.ts";
import { ENVELOPE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { PRIVACY } from "@agent-relay/shared/contract/reports/common.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import { SIGNATURE_CHARACTERS } from "@agent-relay/shared/signing/algorithms.ts";
import { testVectors } from "@agent-relay/shared/signing/test-vectors.ts";
import {
  AUTHENTICATION,
  aboutRelay,
  DELIVERY_RULES,
  type DiscoverySettings,
  publishedLimits,
  RETRY_RULES,
  SCOPE_BOUNDARY,
  SERVICE,
  VERSION,
} from "./about.ts";
import { REQUEST_EXAMPLES, responseExamples } from "./examples.ts";
import { CATALOGUE, linksOf, urlOf, websocketUrls } from "./links.ts";

/** The documents that machines read, but for the keys of live gateways, which change. */

/** Source: protocol, section 4, "Signing manifest". */
export function signingManifest(settings: DiscoverySettings) {
  return {
    ok: true,
    service: SERVICE,
    canonical_signing_order: CANONICAL_SIGNING_ORDER,
    canonicalization: "RFC 8785 for every value; members in canonical_signing_order; absent fields left out; no sig",
    algorithms: (["ed25519", "hmac-sha256"] as const).map((alg) => ({
      alg,
      sig_characters: SIGNATURE_CHARACTERS[alg],
    })),
    encoding: "base64url",
    max_clock_skew_ms: ENVELOPE_LIMITS.maxClockSkewMs,
    websocket: { urls: websocketUrls(settings), limits: ANNOUNCED_LIMITS },
    test_vectors: testVectors(),
    self_test: { method: "POST", url: urlOf(settings.baseUrl, "selfTest") },
  } as const;
}

export function relayManifest(settings: DiscoverySettings): RelayManifest {
  const websocket = { urls: websocketUrls(settings), limits: ANNOUNCED_LIMITS };
  return { ok: true, service: SERVICE, websocket, ...aboutRelay(settings) };
}

/** What agent.json has beside the signing manifest. */
export function agentManifestExtras(settings: DiscoverySettings) {
  const { baseUrl } = settings;
  return {
    ...aboutRelay(settings),
    is_a2a_agent_card: false,
    note: "This is no A2A agent card: the relay is a broker, not an agent. It is the signing manifest, with more beside it.",
    openapi: urlOf(baseUrl, "openapi"),
    asyncapi: urlOf(baseUrl, "asyncapi"),
    instructions: urlOf(baseUrl, "instructions"),
    relay_manifest: urlOf(baseUrl, "relayManifest"),
    readiness: linksOf(baseUrl, ["probes", "presence", "diagnostics"]),
    handoff: linksOf(baseUrl, ["guides"]),
  } as const satisfies Omit<AgentManifest, keyof ReturnType<typeof signingManifest> | "gateway_keys">;
}

export function discoveryIndex(settings: DiscoverySettings): DiscoveryIndex {
  const { baseUrl } = settings;
  const groups: DiscoveryIndex["groups"] = {};
  for (const [id, surface] of CATALOGUE) {
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
    groups,
    websocket: { urls: websocketUrls(settings), asyncapi: urlOf(baseUrl, "asyncapi") },
  };
}

/** What the gateway can do for a caller with an API key, and the counters that each acceptance moves. */
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
  const answers = responseExamples(baseUrl);
  return {
    ok: true,
    service: SERVICE,
    version: VERSION,
    endpoint: SURFACES.simpleCapabilities.path,
    authentication: AUTHENTICATION,
    capabilities: CAPABILITIES.map(({ type, id, counters }) => ({
      type,
      operation_id: id,
      summary: SURFACES[id].summary,
      method: "POST",
      url: urlOf(baseUrl, id),
      headers: { "content-type": "application/json", "x-api-key": "<your API key>", "idempotency-key": "<a new one>" },
      request_example: firstOf(REQUEST_EXAMPLES[id]),
      request_schema: `${urlOf(baseUrl, "openapi")}#/components/schemas/${SURFACES[id].request?.meta()?.id}`,
      success_status: 202,
      response_example: firstOf(answers[id]),
      error_codes: [...SURFACES[id].errors],
      counters: [...counters],
    })),
    delivery: DELIVERY_RULES,
    retries: RETRY_RULES,
    limits: publishedLimits(settings),
    scope_boundary: SCOPE_BOUNDARY,
    privacy: PRIVACY,
  };
}

function firstOf(examples: Readonly<Record<string, object>> | undefined): Record<string, unknown> {
  return { ...Object.values(examples ?? {})[0] };
}
