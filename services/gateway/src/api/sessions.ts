import { targetDelivery } from "relay-protocol/contract/presence.ts";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { PROOF_BOUNDARY, SESSION_OVER, type SessionRecord } from "relay-protocol/contract/session.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import { readSession, type Session } from "relay-window/sessions/look-ups.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import type { RateLimits } from "./authentication.ts";

interface Parts {
  readonly link: RedisCalls;
  readonly limits: RateLimits;
  readonly window: ProcessWindow;
}

/** State of one session. Source: docs/protocol.md#sessions. */
export function sessionEndpoints({ link, limits, window }: Parts): Pick<Handlers<"gateway">, "readSession"> {
  return {
    async readSession(ctx) {
      await limits.addresses.use("session_lookups", ctx.ip);
      const session = await readSession(link, window, ctx.params.session_id ?? "");
      if (session === null) throw new ServiceError("unknown_session");
      return sessionRecord(session);
    },
  };
}

/** The 200 body of a session lookup: ids, times and status, never contents. Source: docs/protocol.md#sessions. */
export function sessionRecord(session: Session): SessionRecord {
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
    next_action: nextAction(session),
    proof_boundary: PROOF_BOUNDARY,
  };
}

/** For both of its agents. An approval opens the handoff gate only where the target received the request. */
function nextAction({ status, delivery }: Session): string {
  if (status === "expired") return SESSION_OVER;
  if (status === "rejected")
    return "It is over: the requester asks another target, or this one again with a new request that says what has changed.";
  if (delivery !== "online") return UNDELIVERED;
  return status === "approved"
    ? `The requester reads ${SURFACES.marketplaceFirstJobHandoff.path} with from, target_agent_id and session_id.`
    : "The target sends a signed session.approve or session.reject.";
}

const UNDELIVERED =
  "The target was not online and did not receive the request: to approve it counts for nothing at the handoff gate. The target asks the requester to request again, or the requester does so once the target is online.";
