import type { SimpleSendRequest, SimpleSessionRequest } from "@agent-relay/shared/contract/requests.ts";
import { PENDING, PROOF_BOUNDARY } from "@agent-relay/shared/contract/session.ts";
import type { SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import type { FirstAnswer } from "@agent-relay/shared/window/acceptance.ts";
import { acceptedEnvelope, acceptedSession } from "../accepted.ts";
import { PRESENCE_ADVICE, RECOVERY } from "../presence-advice.ts";
import { ALICE, BOB, EXAMPLE_ENVELOPE_ID, EXAMPLE_SESSION_ID, exampleEnvelope } from "./example-envelopes.ts";
import { EXAMPLE_TIME } from "./sample.ts";

export const SEND_REQUEST: SimpleSendRequest = { from: ALICE, to: BOB, message: "Hello, Bob." };
export const SESSION_REQUEST: SimpleSessionRequest = {
  from: ALICE,
  to: BOB,
  purpose: "Agree on terms for a translation.",
  intro: "I translate from Danish.",
  scope: "Ten pages, this week.",
  expected_frequency: "once",
  ttl_minutes: 60,
};
export const FEEDBACK_REQUEST = {
  surface: "check-online",
  sentiment: "blocked",
  category: "connector_not_seen",
  message: "Registered, but check-online says not_seen.",
};

/** Request bodies by operation id: name of the example → body. */
export const REQUEST_EXAMPLES: Partial<Record<SurfaceId, Readonly<Record<string, object>>>> = {
  sendMessage: { message: SEND_REQUEST, application_message: { ...SEND_REQUEST, type: "message.offer" } },
  requestSession: { plain: { from: ALICE, to: BOB, purpose: SESSION_REQUEST.purpose }, whole: SESSION_REQUEST },
  submitFeedback: { blocked: FEEDBACK_REQUEST, no_key: { category: "session_request_auth_needed" } },
  selfTest: { register: exampleEnvelope("agent.register"), session_request: exampleEnvelope("session.request") },
};

const FIRST: FirstAnswer = {
  envelopeId: EXAMPLE_ENVELOPE_ID,
  sessionId: EXAMPLE_SESSION_ID,
  delivery: "online",
  acceptedAt: EXAMPLE_TIME,
};
const MINUTE_MS = 60_000;
const NOW_ISO = new Date(EXAMPLE_TIME).toISOString();

/** Answers by operation id, for those that tell more than a sample of their schema would. */
export function responseExamples(baseUrl: string): Partial<Record<SurfaceId, Readonly<Record<string, object>>>> {
  const presence = { ok: true, agent_id: BOB, source: "websocket_presence", recovery: RECOVERY };
  return {
    sendMessage: {
      delivered: acceptedEnvelope(SEND_REQUEST, FIRST),
      target_away: acceptedEnvelope(SEND_REQUEST, { ...FIRST, delivery: "stale" }),
    },
    requestSession: {
      target_online: acceptedSession(SESSION_REQUEST, FIRST, baseUrl),
      target_not_seen: acceptedSession(SESSION_REQUEST, { ...FIRST, delivery: "not_seen" }, baseUrl),
    },
    checkOnline: {
      online: {
        ...presence,
        status: "online",
        can_deliver_realtime: true,
        stale_ms: 1200,
        last_seen_iso: NOW_ISO,
        severity: "ok",
        ...PRESENCE_ADVICE.online,
      },
      not_seen: {
        ...presence,
        status: "not_seen",
        can_deliver_realtime: false,
        stale_ms: null,
        last_seen_iso: null,
        severity: null,
        ...PRESENCE_ADVICE.not_seen,
      },
    },
    readSession: {
      pending: {
        ok: true,
        session_id: EXAMPLE_SESSION_ID,
        status: PENDING,
        requester: ALICE,
        target: BOB,
        created_at_iso: NOW_ISO,
        expires_at_iso: new Date(EXAMPLE_TIME + 60 * MINUTE_MS).toISOString(),
        decided_at_iso: null,
        target_delivery: { status: "online", can_deliver_realtime: true },
        proof_boundary: PROOF_BOUNDARY,
      },
    },
  };
}
