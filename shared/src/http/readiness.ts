import type { z } from "zod";
import type { Ready } from "../contract/responses.ts";
import type { ServiceName } from "../contract/surface.ts";
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

/** The state of a service: read within a second, also while Redis is away. */
export async function readReadiness(
  service: ServiceName,
  { window, board, pod }: ReadinessSources,
): Promise<z.infer<typeof Ready>> {
  const counts = await countAgents(window, board);
  const ready = counts !== null && (pod?.isReady() ?? true);
  return {
    ok: ready,
    service,
    ready,
    online_agents: counts === null ? null : counts.ok,
    stale_agents: counts === null ? null : counts.stale + counts.critical_stale,
    ...(pod === undefined ? {} : { connections: pod.connectionCount() }),
    next_action: ready ? fleetAdvice(counts) : "Wait until Redis is back; the service goes on by itself.",
  };
}

async function countAgents(window: ProcessWindow, board: PresenceBoard): Promise<PresenceCounts | null> {
  try {
    await window.known();
    return await board.count();
  } catch {
    return null;
  }
}

/** Handler of /ready: 200 when Redis answers in a known window, and the pod's own channel where it has one; else 503. */
export function readyHandler(service: ServiceName, sources: ReadinessSources): Handler<"ready"> {
  return async (ctx) => {
    const state = await readReadiness(service, sources);
    ctx.status = state.ready ? 200 : 503;
    return state;
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
