import { notKept } from "relay-protocol/contract/not-kept.ts";
import { targetDelivery } from "relay-protocol/contract/presence.ts";
import { REPUTATION_POLICY } from "relay-protocol/contract/reports/common.ts";
import type { SimpleSendRequest, SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import type { AcceptedEnvelope, AcceptedSession } from "relay-protocol/contract/responses.ts";
import { PENDING } from "relay-protocol/contract/session.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { FirstAnswer } from "relay-window/acceptance/acceptance.ts";

/**
 * The 202 bodies. They are made of the request and of what the first acceptance said, and of nothing else: that is why
 * a repeated Idempotency-Key gets the same bytes. Source: docs/protocol.md#http, docs/protocol.md#counters.
 */

const MINUTE_MS = 60_000;

/** Type of a simple send that names none. */
export const DEFAULT_MESSAGE_TYPE = "message.send";

/** Lifetime of a requested session. */
export function ttlMinutesOf({ ttl_minutes }: SimpleSessionRequest): number {
  return ttl_minutes ?? SESSION_LIMITS.ttlMinutesDefault;
}

/** @param baseUrl links are made from the setting, never from the Host header, which the client writes. */
export function acceptedEnvelope(request: SimpleSendRequest, first: FirstAnswer, baseUrl: string): AcceptedEnvelope {
  return {
    ok: true,
    accepted: true,
    id: first.envelopeId,
    envelope_id: first.envelopeId,
    type: request.type ?? DEFAULT_MESSAGE_TYPE,
    target_delivery: targetDelivery(first.delivery),
    ...(first.delivery === "online" ? {} : { next: notKept("message", "http", request.to, baseUrl) }),
  };
}

/** @param baseUrl as above. */
export function acceptedSession(request: SimpleSessionRequest, first: FirstAnswer, baseUrl: string): AcceptedSession {
  return {
    ok: true,
    accepted: true,
    session_id: first.sessionId as string,
    envelope_id: first.envelopeId,
    target_delivery: targetDelivery(first.delivery),
    next: nextSteps(request, first, baseUrl),
  };
}

function nextSteps(request: SimpleSessionRequest, first: FirstAnswer, baseUrl: string): AcceptedSession["next"] {
  const isOnline = first.delivery === "online";
  const sessionId = first.sessionId as string;
  // Agent ids and session ids hold no character that a query escapes.
  const about = `?from=${request.from}&target_agent_id=${request.to}&session_id=${sessionId}`;
  const firstJobHandoff = baseUrl + SURFACES.marketplaceFirstJobHandoff.path + about;
  const expiresAt = first.acceptedAt + ttlMinutesOf(request) * MINUTE_MS;
  return {
    session: baseUrl + SURFACES.readSession.path.replace("{session_id}", sessionId),
    ...(isOnline ? {} : notKept("session_request", "http", request.to, baseUrl)),
    monitor: {
      metric: "traffic.simple_session_request.accepted",
      url: baseUrl + SURFACES.trafficDaily.path,
    },
    ecosystem_handoff: baseUrl + SURFACES.ecosystemHandoff.path + about,
    marketplace_first_job_handoff: firstJobHandoff,
    first_job_handoff_priority: {
      priority: isOnline ? "after_target_approves" : "after_target_comes_online",
      handoff: firstJobHandoff,
      requires_fresh_online_target_proof: true,
      reason: isOnline
        ? "The target was online; it decides with a signed session.approve or session.reject."
        : "The target was not online and did not receive the request; request again once it is online.",
    },
    async_negotiation_fallback: {
      mode: PENDING,
      session_status: PENDING,
      expires_at_iso: new Date(expiresAt).toISOString(),
      note: "Pending is negotiation intent only, never acceptance, payment or completion. It ends before expires_at_iso if newer requests take its place.",
    },
    verified_deal_reputation_policy: REPUTATION_POLICY,
  };
}
