import { PRESENCE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { fleetAdvice } from "@agent-relay/shared/http/readiness.ts";
import type { Handlers } from "@agent-relay/shared/http/router.ts";
import type { PresenceBoard } from "@agent-relay/shared/window/presence.ts";
import { admitAddress } from "../admission.ts";
import { PRESENCE_ADVICE, RECOVERY } from "../presence-advice.ts";
import type { RateLimits } from "../rate-limits.ts";

type Routes = Pick<Handlers<"gateway">, "checkOnline" | "onlineAgents">;

/** Presence of one agent, and counts of all. Source: protocol, section 7. */
export function presenceRoutes({
  board,
  limits,
}: {
  readonly board: PresenceBoard;
  readonly limits: RateLimits;
}): Routes {
  return {
    async checkOnline(ctx) {
      await admitAddress(ctx, limits, "check_online");
      const { agent_id } = ctx.state.query;
      const { status, severity, staleMs, lastSeen } = await board.read(agent_id);
      return {
        ok: true,
        agent_id,
        status,
        can_deliver_realtime: status === "online",
        stale_ms: staleMs,
        last_seen_iso: lastSeen === null ? null : new Date(lastSeen).toISOString(),
        severity,
        source: "websocket_presence",
        ...PRESENCE_ADVICE[status],
        recovery: RECOVERY,
      };
    },

    async onlineAgents() {
      const counts = await board.count();
      return {
        ok: true,
        online_agents: counts.ok,
        stale_agents: counts.stale + counts.critical_stale,
        offline_agents: counts.offline,
        stale_after_ms: PRESENCE_LIMITS.staleAfterMs,
        by_severity: counts,
        source: "websocket_presence",
        next_action: fleetAdvice(counts),
      };
    },
  };
}
