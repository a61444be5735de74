import type { ServiceName } from "../contract/surfaces.ts";
import type { PresenceBoard, PresenceCounts } from "../window/presence.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import type { Handler } from "./router.ts";

/** What readiness is read from. */
export interface ReadinessSources {
  readonly window: ProcessWindow;
  readonly board: PresenceBoard;
  /** A pod that carries connections. */
  readonly pod?: { readonly isReady: () => boolean; readonly connectionCount: () => number };
}

/**
 * Handler of /ready: 200 when Redis answers in a known window, and the pod's own channel where it has one; else 503.
 * Within a second either way.
 */
export function readyHandler(service: ServiceName, { window, board, pod }: ReadinessSources): Handler<"ready"> {
  const count = async (): Promise<PresenceCounts | null> => {
    try {
      await window.known();
      return await board.count();
    } catch {
      return null;
    }
  };
  return async (ctx) => {
    const counts = await count();
    const ready = counts !== null && (pod?.isReady() ?? true);
    ctx.status = ready ? 200 : 503;
    return {
      ok: ready,
      service,
      ready,
      online_agents: counts === null ? null : counts.ok,
      stale_agents: counts === null ? null : counts.stale + counts.critical_stale,
      ...(pod === undefined ? {} : { connections: pod.connectionCount() }),
      next_action: ready ? fleetAdvice(counts) : "Wait until Redis is back; the service goes on by itself.",
    };
  };
}

/** What to do about the connectors, by their counts. */
export function fleetAdvice(counts: PresenceCounts): string {
  if (counts.ok > 0) return "Check your target with /api/onboarding/check-online, then request a session.";
  if (counts.stale + counts.critical_stale + counts.offline > 0) {
    return "No agent is online: connected clients must send a signed agent.heartbeat at least every 30 seconds.";
  }
  return "No agent was seen in this window: connect a connector and send a signed agent.register.";
}
