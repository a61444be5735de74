import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import type { PresenceStore } from "relay-window/presence/presence.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { fleetAdvice, timesOf } from "relay-window/window/readiness.ts";
import { presenceOfAgent } from "./presence-answer.ts";
import type { RateLimits } from "./rate-limits.ts";

interface Parts {
  readonly window: ProcessWindow;
  readonly presenceStore: PresenceStore;
  readonly limits: RateLimits;
}

/** For who reads counts of a part: the rest may change what the counts alone would advise. */
const PARTIAL_ADVICE =
  "Agents of unavailable_partitions are not counted, and unavailable until these are back; those of the others go on. Check your target with /api/onboarding/check-online.";

/** Presence of one agent, and counts of all. Source: docs/protocol.md#presence. */
export function presenceEndpoints({
  window,
  presenceStore,
  limits,
}: Parts): Pick<Handlers<"gateway">, "checkOnline" | "onlineAgents"> {
  return {
    async checkOnline(ctx) {
      await limits.addresses.use("check_online", ctx.ip);
      const { agent_id } = ctx.state.query;
      const presence = await presenceStore.read(agent_id);
      return presenceOfAgent(agent_id, presence, timesOf(window.current));
    },

    async onlineAgents() {
      const { missing, ...counts } = await presenceStore.count();
      const isComplete = missing.length === 0;
      return {
        ok: true,
        complete: isComplete,
        ...(isComplete ? {} : { unavailable_partitions: missing }),
        online_agents: counts.ok,
        stale_agents: counts.stale + counts.critical_stale,
        offline_agents: counts.offline,
        stale_after_ms: PRESENCE_LIMITS.staleAfterMs,
        by_severity: counts,
        source: "websocket_presence",
        next_action: isComplete ? fleetAdvice(counts, timesOf(window.current)) : PARTIAL_ADVICE,
        privacy: PRIVACY,
      };
    },
  };
}
