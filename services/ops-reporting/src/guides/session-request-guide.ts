import { ENVELOPE_SCHEMAS, SessionRequestPayload } from "relay-protocol/contract/envelope.ts";
import type { GuideStep, SessionRequestGuide } from "relay-protocol/contract/reports/guides.ts";
import { SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import { SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { CANONICAL_SIGNING_ORDER } from "relay-protocol/wire/envelope.ts";
import { ENVELOPE_LIMITS, HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import { commonFields } from "./common-fields.ts";
import type { GuideContext } from "./guide-context.ts";
import { guideWindow, handoffGate } from "./handoff-gate.ts";
import { guideUrl, readOf } from "./links.ts";
import { isReadyToRun, leadsToRequest } from "./next.ts";
import { refreshPacket } from "./refresh-packet.ts";

/** What a request to an online target moves, by the way it is sent. Source: docs/protocol.md#counters. */
const METRICS = {
  gateway: "traffic.simple_session_request.accepted_to_online_target",
  websocket_envelope: "websocket_accepted",
};

/** How to get from nothing to a fresh session proof. Pure. */
export function sessionRequestGuide(context: GuideContext): SessionRequestGuide {
  return {
    ...commonFields(context),
    proof_target: {
      goal: "A session request accepted while its target is online.",
      metric: "latest_online_target_proof_at",
    },
    current_window: guideWindow(context),
    readiness_gate: handoffGate(context),
    prerequisites: PREREQUISITES,
    gateway: gatewayOf(context),
    websocket_envelope: websocketEnvelopeOf(context),
    acceptance_monitoring: {
      method: "GET",
      endpoint: context.settings.baseUrl + SURFACES.trafficDaily.path,
      metrics: METRICS,
      proofs: "recent_session_proofs",
      match: "session_id",
    },
    next_steps: nextSteps(context),
    compact_refresh_packet: refreshPacket(context),
  };
}

const PREREQUISITES = [
  "The target is online: check_online answers can_deliver_realtime true.",
  "You have an API key for your agent id; or a signing key, and are registered on a websocket.",
];

function gatewayOf({ settings }: GuideContext): SessionRequestGuide["gateway"] {
  return {
    description: "The gateway signs for you: no sig, key_id or ts in the body.",
    method: "POST",
    endpoint: endpointOf(settings),
    auth_header: "x-api-key",
    content_type: "application/json",
    required_fields: fieldsOf(SimpleSessionRequest, "required"),
    optional_fields: fieldsOf(SimpleSessionRequest, "optional"),
    max_body_bytes: HTTP_LIMITS.maxBodyBytes,
    requests_per_minute: HTTP_LIMITS.gatewayRequestsPerMinute,
    sender_needs_connector: false,
  };
}

function websocketEnvelopeOf({ settings }: GuideContext): SessionRequestGuide["websocket_envelope"] {
  const envelope = ENVELOPE_SCHEMAS.session_request;
  return {
    description: "A registered agent may sign and send it itself.",
    url: settings.wsUrl + WEBSOCKET_PATH,
    type: "session.request",
    required_fields: fieldsOf(envelope, "required"),
    optional_fields: fieldsOf(envelope, "optional"),
    payload_required_fields: fieldsOf(SessionRequestPayload, "required"),
    payload_optional_fields: fieldsOf(SessionRequestPayload, "optional"),
    canonical_signing_order: [...CANONICAL_SIGNING_ORDER],
    max_clock_skew_ms: ENVELOPE_LIMITS.maxClockSkewMs,
    self_test: settings.baseUrl + SURFACES.selfTest.path,
  };
}

/** As much of a schema as tells which fields an object must have. */
interface ObjectSchema {
  readonly shape: Readonly<Record<string, { safeParse(value: unknown): { readonly success: boolean } }>>;
}

function fieldsOf({ shape }: ObjectSchema, kind: "required" | "optional"): string[] {
  const fields = Object.entries(shape).map(([name, schema]) => ({
    name,
    optional: schema.safeParse(undefined).success,
  }));
  return fields.filter(({ optional }) => optional === (kind === "optional")).map(({ name }) => name);
}

/** What remains to be done, in order. */
function nextSteps(context: GuideContext): GuideStep[] {
  const { links, standing, settings, query } = context;
  const gate: GuideStep = {
    step: "gate",
    action: "Read the handoff gate.",
    method: "GET",
    url: guideUrl(settings, "marketplaceHandoffStatus", query),
  };
  if (standing.allowed === "ask_another_target") return [];
  if (standing.allowed === "wait_for_target_decision") {
    return [{ step: "target_decision", action: standing.advice, ...readOf(links.session) }, gate];
  }
  if (!leadsToRequest(context)) return [gate];
  return [
    { step: "preflight", action: "Check that the target is online.", ...readOf(links.check_online) },
    {
      step: "request",
      action: "Send the request of compact_refresh_packet.",
      ...(isReadyToRun(context) ? { method: "POST", url: endpointOf(settings) } : {}),
    },
    gate,
  ];
}

function endpointOf({ baseUrl }: GuideContext["settings"]): string {
  return baseUrl + SURFACES.requestSession.path;
}
