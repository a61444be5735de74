import { RelayError } from "@agent-relay/shared/contract/errors.ts";
import { PROOF_BOUNDARY } from "@agent-relay/shared/contract/session.ts";
import type { Handlers } from "@agent-relay/shared/http/router.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { readSession } from "@agent-relay/shared/window/sessions.ts";
import { targetDelivery } from "../accepted.ts";
import { admitAddress } from "../admission.ts";
import type { RateLimits } from "../rate-limits.ts";
import type { GatewaySettings } from "../settings.ts";

interface Deps {
  readonly link: RedisLink;
  readonly limits: RateLimits;
  readonly settings: Pick<GatewaySettings, "partitions">;
}

/** State of one session. Source: protocol, section 8. */
export function sessionRoutes({ link, limits, settings }: Deps): Pick<Handlers<"gateway">, "readSession"> {
  return {
    async readSession(ctx) {
      await admitAddress(ctx, limits, "session_lookups");
      const session = await readSession(link, ctx.params.session_id ?? "", settings.partitions);
      if (session === null) throw new RelayError("unknown_session");
      return {
        ok: true,
        session_id: session.sessionId,
        status: session.status,
        requester: session.requester,
        target: session.target,
        created_at_iso: new Date(session.createdAt).toISOString(),
        expires_at_iso: new Date(session.expiresAt).toISOString(),
        decided_at_iso: session.decidedAt === null ? null : new Date(session.decidedAt).toISOString(),
        target_delivery: targetDelivery(session.delivery),
        proof_boundary: PROOF_BOUNDARY,
      };
    },
  };
}
