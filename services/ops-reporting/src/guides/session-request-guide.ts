import {
  CANONICAL_SIGNING_ORDER,
  ENVELOPE_SCHEMAS,
  SessionRequestPayload,
} from "@agent-relay/shared/contract/envelope.ts";
import { ENVELOPE_LIMITS, HTTP_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type { GuideStep } from "@agent-relay/shared/contract/reports/guides.ts";
import type { SessionRequestGuide } from "@agent-relay/shared/contract/reports/guides-session-request.ts";
import { SimpleSessionRequest } from "@agent-relay/shared/contract/requests.ts";
import type { z } from "zod";
import { guideWindow, handoffGate } from "./figures.ts";
import { PASS_WHEN, refreshPacket } from "./refresh-packet.ts";
import { type GuideView, guideFrame } from "./view.ts";

const ONLINE_TARGET_METRIC = "traffic.simple_session_request.accepted_to_online_target";

/** How to come from nothing to a fresh proof. Pure. */
export function sessionRequestGuide(view: GuideView): SessionRequestGuide {
  const { links, negotiation } = view;
  return {
    ...guideFrame(view),
    proof_target: {
      goal: "One session request, accepted while its target is online.",
      metric: ONLINE_TARGET_METRIC,
      pass_when: PASS_WHEN,
    },
    current_window: guideWindow(view),
    readiness_gate: handoffGate(view),
    next_action: negotiation.nextAction,
    prerequisites: PREREQUISITES,
    gateway: gatewayOf(view),
    websocket_envelope: websocketEnvelopeOf(view),
    acceptance_monitoring: {
      method: "GET",
      endpoint: links.session_proof_retention,
      metric: ONLINE_TARGET_METRIC,
      proofs: "recent_session_proofs",
      match: "session_id",
      session: links.session,
    },
    next_steps: nextSteps(view),
    compact_refresh_packet: refreshPacket(view),
  };
}

const PREREQUISITES = [
  "The target's connector is online: check_online says can_deliver_realtime true.",
  "You hold an API key that is allowed for your agent id; the sender needs no connector of its own.",
  "Without a key, post feedback with category session_request_auth_needed; neither that nor a 401 is relay proof.",
];

function gatewayOf({ links }: GuideView): SessionRequestGuide["gateway"] {
  return {
    description: "The gateway signs the session.request envelope for you: no signature, key_id or ts in the body.",
    method: "POST",
    endpoint: links.session_request,
    auth_header: "x-api-key",
    content_type: "application/json",
    required_fields: fieldsOf(SimpleSessionRequest, "required"),
    optional_fields: fieldsOf(SimpleSessionRequest, "optional"),
    max_body_bytes: HTTP_LIMITS.maxBodyBytes,
    requests_per_minute: HTTP_LIMITS.gatewayRequestsPerMinute,
    sender_needs_connector: false,
  };
}

function websocketEnvelopeOf({ links }: GuideView): SessionRequestGuide["websocket_envelope"] {
  const envelope = ENVELOPE_SCHEMAS.session_request;
  return {
    description: "A registered connector may sign and send the request itself; it counts for the gate all the same.",
    url: links.websocket,
    type: "session.request",
    required_fields: fieldsOf(envelope, "required"),
    optional_fields: fieldsOf(envelope, "optional"),
    payload_required_fields: fieldsOf(SessionRequestPayload, "required"),
    payload_optional_fields: fieldsOf(SessionRequestPayload, "optional"),
    canonical_signing_order: [...CANONICAL_SIGNING_ORDER],
    max_clock_skew_ms: ENVELOPE_LIMITS.maxClockSkewMs,
    signing_manifest: links.signing_manifest,
    self_test: links.self_test,
  };
}

function fieldsOf({ shape }: z.ZodObject, kind: "required" | "optional"): string[] {
  const isOptional = (schema: z.core.$ZodType) => (schema as z.ZodType).safeParse(undefined).success;
  return Object.keys(shape).filter((name) => isOptional(shape[name] as z.ZodType) === (kind === "optional"));
}

/** What remains to be done, in order. */
function nextSteps({ links, negotiation, source }: GuideView): GuideStep[] {
  const gate: GuideStep[] = [
    { step: "gate", action: "Read the handoff gate.", method: "GET", url: links.marketplace_handoff_status },
    {
      step: "handoff",
      action: "On go, open the first-job handoff.",
      method: "GET",
      url: links.marketplace_first_job_handoff,
    },
  ];
  if (negotiation.freshness.state === "fresh") return gate;
  const connector: GuideStep[] = [
    { step: "connector", action: "Bring the target's connector online.", method: "GET", url: links.activation_plan },
  ];
  return [
    ...(source.presence.ok === 0 ? connector : []),
    { step: "preflight", action: "Check that the target is online.", method: "GET", url: links.check_online },
    { step: "packet", action: "Read the refresh packet.", method: "GET", url: links.session_request_refresh_packet },
    { step: "request", action: "Send its request.", method: "POST", url: links.session_request },
    { step: "proof", action: "Find the session among the proofs.", method: "GET", url: links.session_proof_retention },
    ...gate,
  ];
}
