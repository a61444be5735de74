import { SESSION_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type { DeliveryStatus, TargetDelivery } from "@agent-relay/shared/contract/presence.ts";
import { REPUTATION_POLICY } from "@agent-relay/shared/contract/reports/common.ts";
import type { SimpleSendRequest, SimpleSessionRequest } from "@agent-relay/shared/contract/requests.ts";
import type { AcceptedEnvelope, AcceptedSession } from "@agent-relay/shared/contract/responses.ts";
import { PENDING } from "@agent-relay/shared/contract/session.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { FirstAnswer } from "@agent-relay/shared/window/acceptance.ts";

/**
 * The 202 bodies. Pure, and of nothing but the request and what acceptance said first: so a replay has the same bytes.
 * Source: protocol, sections 9 and 10.
 */

const MINUTE_MS = 60_000;

/** Type of a simple send that names none. */
export const DEFAULT_MESSAGE_TYPE = "message.send";

/** Lifetime of a requested session. */
export function ttlMinutesOf({ ttl_minutes }: SimpleSessionRequest): number {
  return ttl_minutes ?? SESSION_LIMITS.ttlMinutesDefault;
}

export function targetDelivery(status: DeliveryStatus): TargetDelivery {
  return { status, can_deliver_realtime: status === "online" };
}

export function acceptedEnvelope(request: SimpleSendRequest, first: FirstAnswer): AcceptedEnvelope {
  return {
    ok: true,
    accepted: true,
    id: first.envelopeId,
    envelope_id: first.envelopeId,
    type: request.type ?? DEFAULT_MESSAGE_TYPE,
    target_delivery: targetDelivery(first.delivery),
  };
}

/** @param baseUrl links are made of the setting, never of the Host header, which the client writes. */
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
  const firstJobHandoff = baseUrl + SURFACES.marketplaceFirstJobHandoff.path;
  const expiresAt = first.acceptedAt + ttlMinutesOf(request) * MINUTE_MS;
  return {
    monitor: {
      metric: "traffic.simple_session_request.accepted",
      url: baseUrl + SURFACES.trafficDaily.path,
    },
    ecosystem_handoff: baseUrl + SURFACES.ecosystemHandoff.path,
    marketplace_first_job_handoff: firstJobHandoff,
    first_job_handoff_priority: {
      priority: isOnline ? "after_target_approves" : "after_target_comes_online",
      handoff: firstJobHandoff,
      requires_fresh_online_target_proof: true,
      reason: isOnline
        ? "The target was online; it decides with a signed session.approve or session.reject."
        : "The target was not online and did not get the request; request again once it is online.",
    },
    async_negotiation_fallback: {
      mode: PENDING,
      session_status: PENDING,
      expires_at_iso: new Date(expiresAt).toISOString(),
      note: "Pending is negotiation intent only, never acceptance, payment or completion.",
    },
    verified_deal_reputation_policy: REPUTATION_POLICY,
  };
}
