import { notKept } from "relay-protocol/contract/not-kept.ts";
import { targetDelivery } from "relay-protocol/contract/presence.ts";
import { REPUTATION_POLICY } from "relay-protocol/contract/reports/common.ts";
import { SimpleSendRequest, SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import type { AcceptedEnvelope, AcceptedSession } from "relay-protocol/contract/responses.ts";
import { PENDING } from "relay-protocol/contract/session.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { problemOf, refusalOf } from "relay-runtime/http/problem.ts";
import type { Handlers, SurfaceContext } from "relay-runtime/http/router.ts";
import type { TraceSpan } from "relay-runtime/tracing/span.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { FirstAnswer } from "relay-window/acceptance/acceptance.ts";
import type { GatewaySettings } from "../settings.ts";
import { type AuthenticationParts, authenticate } from "./authentication.ts";
import type { EnvelopePublisher } from "./publisher.ts";

type ToPublish = Parameters<EnvelopePublisher["publish"]>;

interface Parts extends AuthenticationParts {
  readonly publisher: EnvelopePublisher;
  readonly tracing: Tracing;
  readonly settings: Pick<GatewaySettings, "baseUrl" | "contact">;
}

/** The two requests for which the gateway makes and signs the envelope. Source: docs/protocol.md#http. */
export function simpleRequestEndpoints(parts: Parts): Pick<Handlers<"gateway">, "sendMessage" | "requestSession"> {
  const { publisher, settings, tracing } = parts;
  const publish = async (ctx: SurfaceContext, startedAt: number, ...[request, content]: ToPublish) => {
    const work = (span: TraceSpan | undefined) => publisher.publish(request, content, span);
    const { first, replayed } = await traced(ctx, { tracing, startedAt }, work);
    if (replayed) ctx.set("Idempotent-Replayed", "true");
    return first;
  };
  return {
    async sendMessage(ctx) {
      const startedAt = performance.now();
      const request = await authenticate(ctx, SimpleSendRequest, parts);
      const { message, type = DEFAULT_MESSAGE_TYPE } = request.body;
      const content = { kind: "message", type, payload: { message } } as const;
      return acceptedEnvelope(request.body, await publish(ctx, startedAt, request, content), settings.baseUrl);
    },

    async requestSession(ctx) {
      const startedAt = performance.now();
      const request = await authenticate(ctx, SimpleSessionRequest, parts);
      const { from: _from, to: _to, ...terms } = request.body;
      const payload = { ...terms, ttl_minutes: ttlMinutesOf(request.body) };
      const content = { kind: "session_request", type: "session.request", payload } as const;
      return acceptedSession(request.body, await publish(ctx, startedAt, request, content), settings.baseUrl);
    },
  };
}

/**
 * Does the work of a request in a span that begins when the request came in, in the trace that its `traceparent` names. Only
 * an authenticated request within its rate has a span: strangers must not fill a collector.
 * @param options.startedAt monotonic ms.
 */
async function traced<Result>(
  ctx: SurfaceContext,
  { tracing, startedAt }: { readonly tracing: Tracing; readonly startedAt: number },
  work: (span: TraceSpan | undefined) => Promise<Result>,
): Promise<Result> {
  if (!tracing.isOn) return await work(undefined);
  const { method, path } = ctx.state.surface;
  const attributes = { "http.request.method": method, "http.route": path };
  const traceparent = ctx.get("traceparent");
  const span = tracing.begin(`${method} ${path}`, { kind: "server", startedAt, traceparent, attributes });
  try {
    const result = await work(span);
    span?.end({ "http.response.status_code": ctx.status });
    return result;
  } catch (error) {
    const refusal = refusalOf(error);
    span?.end({ "http.response.status_code": problemOf(refusal).status, "error.type": refusal.code });
    throw error;
  }
}

const MINUTE_MS = 60_000;

/** Type of a simple send without `type`. */
const DEFAULT_MESSAGE_TYPE = "message.send";

/** Lifetime of a requested session. */
function ttlMinutesOf({ ttl_minutes }: SimpleSessionRequest): number {
  return ttl_minutes ?? SESSION_LIMITS.ttlMinutesDefault;
}

/**
 * The body of a 202. It is made of the request and of the first acceptance alone, so that a repeated Idempotency-Key
 * gets the same bytes. Source: docs/protocol.md#http, docs/protocol.md#counters.
 * @param baseUrl links are made from the setting, never from the Host header, which the client writes.
 */
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

/** The same for a session request. */
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
