import { SimpleSendRequest, SimpleSessionRequest } from "@agent-relay/shared/contract/requests.ts";
import type { Handlers, SurfaceContext } from "@agent-relay/shared/http/router.ts";
import { acceptedEnvelope, acceptedSession, DEFAULT_MESSAGE_TYPE, ttlMinutesOf } from "../accepted.ts";
import { type AdmissionDeps, admit } from "../admission.ts";
import type { Published, Publisher } from "../publisher.ts";
import type { GatewaySettings } from "../settings.ts";

type Routes = Pick<Handlers<"gateway">, "sendMessage" | "requestSession">;

/** The two endpoints that sign for their caller. Source: protocol, section 9. */
export function simpleRequestRoutes(
  deps: AdmissionDeps & { readonly publisher: Publisher; readonly settings: Pick<GatewaySettings, "baseUrl"> },
): Routes {
  const { publisher, settings } = deps;
  return {
    async sendMessage(ctx) {
      const request = await admit(ctx, SimpleSendRequest, deps);
      const { message, type = DEFAULT_MESSAGE_TYPE } = request.body;
      const published = await publisher.publish(request, { kind: "message", type, payload: { message } });
      markReplay(ctx, published);
      return acceptedEnvelope(request.body, published.first);
    },

    async requestSession(ctx) {
      const request = await admit(ctx, SimpleSessionRequest, deps);
      const { from: _from, to: _to, ...terms } = request.body;
      const payload = { ...terms, ttl_minutes: ttlMinutesOf(request.body) };
      const published = await publisher.publish(request, { kind: "session_request", type: "session.request", payload });
      markReplay(ctx, published);
      return acceptedSession(request.body, published.first, settings.baseUrl);
    },
  };
}

function markReplay(ctx: SurfaceContext, { replayed }: Published): void {
  if (replayed) ctx.set("Idempotent-Replayed", "true");
}
