import type { Authentication, PublishedLimits } from "relay-protocol/contract/documents.ts";
import { announcedLimits } from "relay-protocol/contract/frames.ts";
import { ECONOMIC_OPERABILITY, PRIVACY, SCOPE_FLAGS } from "relay-protocol/contract/reports/common.ts";
import { PROOF_BOUNDARY } from "relay-protocol/contract/session.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import {
  ENVELOPE_LIMITS,
  HTTP_LIMITS,
  PRESENCE_LIMITS,
  SESSION_LIMITS,
  TEXT_LIMITS,
} from "relay-protocol/wire/limits.ts";
import { contactOf, type GatewaySettings } from "../settings.ts";

export const SERVICE = "agent-relay";
export const TITLE = "Agent Relay";
/** Version of the protocol, as in OpenAPI. Source: docs/protocol.md#versions. */
export const VERSION = "1.0.0";
export const DESCRIPTION =
  "A broker between autonomous agents: signed envelopes over websockets, an HTTP gateway that signs for callers with an API key, presence, and public reports.";

/** The settings that the documents publish. */
export type DiscoverySettings = Pick<
  GatewaySettings,
  | "baseUrl"
  | "wsUrl"
  | "publicHosts"
  | "alternateWsPath"
  | "offlineAfterMs"
  | "proofFreshnessMs"
  | "publicRequestsPerMinute"
  | "envelopesPerSecond"
  | "bytesPerSecond"
  | "contact"
  | "packagesDir"
>;

export const API_KEY_RULE =
  "Send the key in the header only, never in a URL, a body or feedback, and never log it. It is bound to its from ids.";

export const SIGNING_RULE =
  "Every envelope is signed by its sender, with a key that the relay's operator lists, or with one under a credential of an issuer that the operator admits.";

export function authenticationOf({ contact }: Pick<DiscoverySettings, "contact">): Authentication {
  return {
    gateway: {
      type: "apiKey",
      in: "header",
      name: "x-api-key",
      rule: API_KEY_RULE,
      without_a_key: `With a signing key, send it on the websocket. Else ask for one. ${contactOf(contact).note} Feedback with category session_request_auth_needed is only counted, and no person reads it. Neither a 401 nor feedback is a relay proof.`,
    },
    websocket: SIGNING_RULE,
    everything_else: "Public: no credentials.",
  };
}

/** What acceptance means. */
export const DELIVERY_RULES = [
  "202 means accepted, not delivered: target_delivery.can_deliver_realtime says whether the target could receive it.",
  "A session request to a target that is not online stays pending; its contents are not stored.",
  "The sender needs no connector; the target needs one to receive.",
  "Delivery is at most once, in the order in which one connection sends to one target.",
];

/** What happens beyond the limits of pending sessions. Their names do not say it. */
export const PENDING_RULE =
  "Beyond max_pending_sessions_per_requester_at_target and max_pending_sessions_per_target a session request is accepted, and the oldest there gives way: it is expired. Beyond max_pending_sessions_per_key and sessions_opened_per_minute it is refused: rate_limited.";

/** What a sender does about the rates of a websocket. */
export const RATE_RULE =
  "What a websocket sends over its rates waits, and heartbeats behind it: keep at most max_unacknowledged envelopes without an answer, or your agents go stale.";

/** When a repeat helps, and when it would only be a duplicate. */
export const UNKNOWN_RULE =
  "Outcome unknown (unavailable, no answer)? Send the same envelope again: had it arrived, the ack says duplicate. After an answer: a new envelope, a new id.";

export const IDEMPOTENCY_RULE =
  "Send an Idempotency-Key: the same key with the same body returns the first 202 again, and nothing is sent twice.";

export const RETRY_RULES = [
  IDEMPOTENCY_RULE,
  "After 429, 409 or 503 wait for Retry-After, then send the same once more.",
  UNKNOWN_RULE,
];

export function publishedLimits(settings: DiscoverySettings): PublishedLimits {
  return {
    body_max_bytes: HTTP_LIMITS.maxBodyBytes,
    gateway_requests_per_minute: HTTP_LIMITS.gatewayRequestsPerMinute,
    failed_keys_per_minute: HTTP_LIMITS.failedKeysPerMinute,
    public_requests_per_minute: settings.publicRequestsPerMinute,
    idempotency_key_max_characters: HTTP_LIMITS.idempotencyKeyCharacters,
    idempotency_window_ms: HTTP_LIMITS.idempotencyMs,
    message_max_characters: TEXT_LIMITS.message,
    purpose_max_characters: TEXT_LIMITS.purpose,
    intro_max_characters: TEXT_LIMITS.intro,
    scope_max_characters: TEXT_LIMITS.scope,
    expected_frequency_max_characters: TEXT_LIMITS.expectedFrequency,
    ttl_minutes_min: SESSION_LIMITS.ttlMinutesMin,
    ttl_minutes_max: SESSION_LIMITS.ttlMinutesMax,
    ttl_minutes_default: SESSION_LIMITS.ttlMinutesDefault,
    max_payload_depth: ENVELOPE_LIMITS.maxPayloadDepth,
    max_payload_members: ENVELOPE_LIMITS.maxPayloadMembers,
    ...announcedLimits(settings),
    offline_after_ms: settings.offlineAfterMs,
    stability_hold_ms: PRESENCE_LIMITS.stabilityHoldMs,
    proof_freshness_window_ms: settings.proofFreshnessMs,
    retained_proofs: SESSION_LIMITS.retainedProofs,
    max_pending_sessions_per_target: SESSION_LIMITS.maxPendingPerTarget,
    max_pending_sessions_per_requester_at_target: SESSION_LIMITS.maxPendingPerRequesterAtTarget,
    max_pending_sessions_per_key: SESSION_LIMITS.maxPendingPerPrincipal,
    sessions_opened_per_minute: SESSION_LIMITS.openedPerMinute,
    sessions_opened_per_minute_per_key: SESSION_LIMITS.openedPerMinuteOfPrincipal,
    session_kept_after_end_ms: SESSION_LIMITS.keepAfterEndMs,
  };
}

export const SCOPE_BOUNDARY = { ...ECONOMIC_OPERABILITY, proof_boundary: PROOF_BOUNDARY };

/** The members that the manifests have in common. */
export function describeRelay(settings: DiscoverySettings) {
  const offered = offeredBy(settings);
  return {
    version: VERSION,
    description: DESCRIPTION,
    base_url: settings.baseUrl,
    authentication: authenticationOf(settings),
    limits: publishedLimits(settings),
    contact: contactOf(settings.contact),
    scope_boundary: SCOPE_BOUNDARY,
    ...SCOPE_FLAGS,
    privacy: PRIVACY,
    links: linksOf(settings.baseUrl, offered),
    link_templates: linkTemplatesOf(settings.baseUrl, offered),
  };
}

export type Group = Surface["group"];

/** The catalogue as a list, in its order. */
export const CATALOGUE = Object.entries(SURFACES) as unknown as readonly (readonly [SurfaceId, Surface])[];

/** True for a surface that can be read without parameters. */
export function isPlainRead({ method, path, query }: Surface): boolean {
  return method === "GET" && !path.includes("{") && (query === null || query.safeParse({}).success);
}

/** Made from the setting, never from the Host header, which the client writes. */
export function urlOf(baseUrl: string, id: SurfaceId): string {
  return baseUrl + SURFACES[id].path;
}

/** The surfaces that answer 404 on a relay without packages: it links them nowhere. */
const OF_PACKAGES: readonly SurfaceId[] = ["newestConnector", "packageFile"];

/** The catalogue of this relay. */
export function offeredBy({ packagesDir }: { readonly packagesDir: string | undefined }): typeof CATALOGUE {
  return packagesDir === undefined ? CATALOGUE.filter(([id]) => !OF_PACKAGES.includes(id)) : CATALOGUE;
}

/** URLs of the surfaces that can be read without parameters, by operation id. */
function linksOf(baseUrl: string, surfaces: typeof CATALOGUE): Record<string, string> {
  const listed = surfaces.filter(([, surface]) => isPlainRead(surface));
  return Object.fromEntries(listed.map(([id, { path }]) => [id, baseUrl + path]));
}

/** The same of the surfaces in some groups. */
export function linksIn(groups: readonly Group[], baseUrl: string): Record<string, string> {
  return linksOf(
    baseUrl,
    CATALOGUE.filter(([, { group }]) => groups.includes(group)),
  );
}

/** RFC 6570 templates of the surfaces that need a parameter, by operation id. */
function linkTemplatesOf(baseUrl: string, surfaces: typeof CATALOGUE): Record<string, string> {
  const listed = surfaces.filter(([, surface]) => surface.method === "GET" && !isPlainRead(surface));
  return Object.fromEntries(listed.map(([id, surface]) => [id, baseUrl + surface.path + queryTemplate(surface)]));
}

function queryTemplate({ query }: Surface): string {
  const names = query === null ? [] : Object.keys((query as unknown as { shape: object }).shape);
  return names.length === 0 ? "" : `{?${names.join(",")}}`;
}

export function websocketUrls({ wsUrl, alternateWsPath }: { wsUrl: string; alternateWsPath: string }): string[] {
  return [wsUrl + WEBSOCKET_PATH, wsUrl + alternateWsPath];
}
