import { SimpleSendRequest, SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import type { Handlers, SurfaceContext } from "relay-runtime/http/router.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { GatewaySettings } from "../settings.ts";
import { acceptedEnvelope, acceptedSession, DEFAULT_MESSAGE_TYPE, ttlMinutesOf } from "./accepted-requests.ts";
import { type AuthenticationParts, authenticate } from "./authentication.ts";
import type { EnvelopePublisher, PublishedEnvelope } from "./envelope-publisher.ts";
import { traced } from "./traced.ts";

interface Parts extends AuthenticationParts {
  readonly publisher: EnvelopePublisher;
  readonly tracing: Tracing;
  readonly settings: Pick<GatewaySettings, "baseUrl" | "contact">;
}

/** The two requests for which the gateway makes and signs the envelope. Source: docs/protocol.md#http. */
export function simpleRequestEndpoints(parts: Parts): Pick<Handlers<"gateway">, "sendMessage" | "requestSession"> {
  const { publisher, settings, tracing } = parts;
  return {
    async sendMessage(ctx) {
      const startedAt = performance.now();
      const request = await authenticate(ctx, SimpleSendRequest, parts);
      const { message, type = DEFAULT_MESSAGE_TYPE } = request.body;
      const content = { kind: "message", type, payload: { message } } as const;
      const published = await traced(ctx, { tracing, startedAt }, (span) => publisher.publish(request, content, span));
      markReplay(ctx, published);
      return acceptedEnvelope(request.body, published.first, settings.baseUrl);
    },

    async requestSession(ctx) {
      const startedAt = performance.now();
      const request = await authenticate(ctx, SimpleSessionRequest, parts);
      const { from: _from, to: _to, ...terms } = request.body;
      const payload = { ...terms, ttl_minutes: ttlMinutesOf(request.body) };
      const content = { kind: "session_request", type: "session.request", payload } as const;
      const published = await traced(ctx, { tracing, startedAt }, (span) => publisher.publish(request, content, span));
      markReplay(ctx, published);
      return acceptedSession(request.body, published.first, settings.baseUrl);
    },
  };
}

function markReplay(ctx: SurfaceContext, { replayed }: PublishedEnvelope): void {
  if (replayed) ctx.set("Idempotent-Replayed", "true");
}
