import { CheckOnline } from "../presence.ts";
import {
  CheckOnlineQuery,
  FeedbackRequest,
  SelfTestQuery,
  SimpleSendRequest,
  SimpleSessionRequest,
} from "../requests.ts";
import {
  AcceptedEnvelope,
  AcceptedSession,
  FeedbackAck,
  OnlineAgents,
  SelfTestGuide,
  SelfTestPass,
  SignedEnvelope,
} from "../responses.ts";
import { SessionRecord } from "../session.ts";
import { BODY_ERRORS, get, post, type Surface } from "../surface.ts";

const GATEWAY_ERRORS = [
  ...BODY_ERRORS,
  "missing_api_key",
  "invalid_api_key",
  "api_key_not_allowed_for_sender",
  "idempotency_in_progress",
  "idempotency_key_reused",
  "rate_limited",
  "over_capacity",
  "unavailable",
] as const;
const INTAKE_ERRORS = [
  "malformed_json",
  "frame_too_large",
  "invalid_envelope",
  "clock_skew",
  "unknown_key",
  "bad_signature",
  "key_not_allowed",
] as const;

/** The API: sends, sessions, presence, feedback, self-test. Answered by the gateway. */
export const GATEWAY_SURFACES = {
  sendMessage: post({
    path: "/v1/messages/send",
    service: "gateway",
    group: "gateway",
    summary: "Send a message; the gateway signs it.",
    apiKey: true,
    request: SimpleSendRequest,
    response: AcceptedEnvelope,
    status: 202,
    errors: [...GATEWAY_ERRORS, "frame_too_large"],
  }),
  requestSession: post({
    path: "/v1/sessions/request",
    service: "gateway",
    group: "gateway",
    summary: "Request a session; the gateway signs the request.",
    apiKey: true,
    request: SimpleSessionRequest,
    response: AcceptedSession,
    status: 202,
    errors: GATEWAY_ERRORS,
  }),
  checkOnline: get({
    path: "/api/onboarding/check-online",
    service: "gateway",
    group: "presence",
    summary: "Presence of one agent, with steps to recover.",
    query: CheckOnlineQuery,
    response: CheckOnline,
    errors: ["invalid_request", "rate_limited", "unavailable"],
  }),
  onlineAgents: get({
    path: "/api/onboarding/online-agents",
    service: "gateway",
    group: "presence",
    summary: "Counts of agents by presence, without ids.",
    response: OnlineAgents,
    errors: ["unavailable"],
  }),
  readSession: get({
    path: "/sessions/{session_id}",
    service: "gateway",
    group: "presence",
    summary: "State of one session: ids, times and status, without contents.",
    response: SessionRecord,
    errors: ["unknown_session", "rate_limited", "unavailable"],
  }),
  submitFeedback: post({
    path: "/api/public/feedback",
    aliases: ["/api/feedback"],
    service: "gateway",
    group: "feedback",
    summary: "Send feedback; only aggregates are kept.",
    request: FeedbackRequest,
    response: FeedbackAck,
    status: 202,
    errors: [...BODY_ERRORS, "rate_limited", "unavailable"],
  }),
  selfTestGuide: get({
    path: "/api/self-test",
    service: "gateway",
    group: "self-test",
    summary: "How to sign, and how to check a signature.",
    response: SelfTestGuide,
  }),
  selfTest: post({
    path: "/api/self-test",
    service: "gateway",
    group: "self-test",
    summary: "Check a signed envelope as the websocket does, without accepting it.",
    query: SelfTestQuery,
    request: SignedEnvelope,
    response: SelfTestPass,
    errors: [...INTAKE_ERRORS, "invalid_request", "body_too_large", "unsupported_media_type", "rate_limited"],
  }),
} as const satisfies Record<string, Surface>;
