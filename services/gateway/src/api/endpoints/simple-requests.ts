import { SimpleSendRequest, SimpleSessionRequest } from "protocol/contract/requests.ts";
import type { Handlers, SurfaceContext } from "runtime/http/router.ts";
import {
  acceptedEnvelope,
  acceptedSession,
  DEFAULT_MESSAGE_TYPE,
  ttlMinutesOf,
} from "../../answers/accepted-requests.ts";
import type { GatewaySettings } from "../../settings.ts";
import { type AuthenticationParts, authenticate } from "../authentication.ts";
import type { EnvelopePublisher, PublishedEnvelope } from "../envelope-publisher.ts";

interface Parts extends AuthenticationParts {
  readonly publisher: EnvelopePublisher;
  readonly settings: Pick<GatewaySettings, "baseUrl" | "contact">;
}

/** The two requests for which the gateway makes and signs the envelope. Source: docs/protocol.md#http. */
export function simpleRequestEndpoints(parts: Parts): Pick<Handlers<"gateway">, "sendMessage" | "requestSession"> {
  const { publisher, settings } = parts;
  return {
    async sendMessage(ctx) {
      const request = await authenticate(ctx, SimpleSendRequest, parts);
      const { message, type = DEFAULT_MESSAGE_TYPE } = request.body;
      const published = await publisher.publish(request, { kind: "message", type, payload: { message } });
      markReplay(ctx, published);
      return acceptedEnvelope(request.body, published.first, settings.baseUrl);
    },

    async requestSession(ctx) {
      const request = await authenticate(ctx, SimpleSessionRequest, parts);
      const { from: _from, to: _to, ...terms } = request.body;
      const payload = { ...terms, ttl_minutes: ttlMinutesOf(request.body) };
      const published = await publisher.publish(request, { kind: "session_request", type: "session.request", payload });
      markReplay(ctx, published);
      return acceptedSession(request.body, published.first, settings.baseUrl);
    },
  };
}

function markReplay(ctx: SurfaceContext, { replayed }: PublishedEnvelope): void {
  if (replayed) ctx.set("Idempotent-Replayed", "true");
}
