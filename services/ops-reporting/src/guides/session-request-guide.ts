import { ENVELOPE_SCHEMAS, SessionRequestPayload } from "relay-protocol/contract/envelope.ts";
import { LIVENESS_CONTRACT } from "relay-protocol/contract/presence.ts";
import {
  GATE_GO,
  type GuideStep,
  type RefreshPacket,
  type SessionRequestGuide,
  type SessionRequestRefreshPacket,
  TARGET_PLACEHOLDER,
} from "relay-protocol/contract/reports/guides.ts";
import { SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import { SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { CANONICAL_SIGNING_ORDER } from "relay-protocol/wire/envelope.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { ENVELOPE_LIMITS, HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import {
  commonFields,
  type GuideContext,
  guideUrl,
  isReadyToRun,
  leadsToRequest,
  readOf,
  sessionRequest,
  withoutSession,
} from "./guide.ts";
import { guideWindow, handoffGate } from "./handoff-gate.ts";

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

const HOLD_SECONDS = LIVENESS_CONTRACT.stability_hold_ms / 1000;

/** The fields of the answer to a session request that make it a proof. */
const PASS_WHEN = [
  { field: "accepted", equals: true },
  { field: "target_delivery.can_deliver_realtime", equals: true },
];

export function sessionRequestRefreshPacket(context: GuideContext): SessionRequestRefreshPacket {
  return { ...commonFields(context), ...refreshPacket(context) };
}

const STATUS = { none: "first_proof_due", stale_refresh_due: "refresh_due", fresh: "fresh" } as const;

/** The next session request, ready to send where neither agent is missing. Pure. */
export function refreshPacket(context: GuideContext): RefreshPacket {
  const { standing, settings, query, missing } = context;
  const { state } = standing.freshness;
  const { body, ...request } = sessionRequest(context);
  return {
    status: STATUS[state],
    action: standing.allowed,
    should_refresh_before_handoff: state !== "fresh",
    refresh_urgency: handoffGate(context).refresh_urgency,
    target_agent_id: query.target_agent_id ?? TARGET_PLACEHOLDER,
    ...request,
    request_body: body,
    // The request, not the document: under a fresh proof there is none to send.
    ready_to_run: isReadyToRun(context) && leadsToRequest(context),
    missing: [...missing],
    preflight_checklist: preflightChecklist(context),
    pass_when: PASS_WHEN,
    troubleshooting: TROUBLESHOOTING,
    post_refresh_gate: {
      method: "GET",
      // With the session that this request opens, not with one of before.
      endpoint: guideUrl(settings, "marketplaceHandoffStatus", withoutSession(query)),
      add: ["session_id"],
      pass_when: [
        { field: "status", equals: GATE_GO },
        { field: "target_decision", equals: "approved" },
        { field: "important_handoff_permitted_from_process_window", equals: true },
      ],
    },
  };
}

function preflightChecklist({ links, standing }: GuideContext): RefreshPacket["preflight_checklist"] {
  const expect = { field: "can_deliver_realtime", equals: true };
  const request = { method: "GET", url: links.check_online, expect } as const;
  const isNamed = standing.target !== null;
  return [
    { check: "Your API key is allowed for your agent id; it goes in the header only.", required: true },
    { check: "The target is online.", required: true, ...(isNamed ? { request } : {}) },
    { check: `It was held for ${HOLD_SECONDS} s: less likely to be lost.`, required: false },
  ];
}

/** What can come back for a request that runs as it stands: the acceptance that is no proof, and refusals. */
const TROUBLESHOOTING: RefreshPacket["troubleshooting"] = [
  {
    status: 202,
    code: null,
    fix: "If target_delivery.can_deliver_realtime is false, it is no proof: request again once the target is online.",
  },
  ...(["invalid_api_key", "api_key_not_allowed_for_sender", "rate_limited", "unavailable"] as const).map((code) => {
    const { httpStatus, hint } = ERRORS[code];
    return { status: httpStatus as number, code, fix: hint };
  }),
];
