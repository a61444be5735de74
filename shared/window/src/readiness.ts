import { ServiceError } from "protocol/contract/errors.ts";
import { PRIVACY } from "protocol/contract/reports/common.ts";
import type { NotReadyReason, Ready } from "protocol/contract/responses.ts";
import type { ServiceName } from "protocol/contract/surface.ts";
import type { z } from "zod";
import { fleetAdvice } from "./fleet-advice.ts";
import type { PodChannel } from "./pod-channel.ts";
import type { PresenceCounts, PresenceStore } from "./presence.ts";
import type { ProcessWindow } from "./process-window.ts";
import { LINK_DOWN_ADVICE, linkDown } from "./redis/link-down.ts";
import type { RedisCalls } from "./redis/redis-calls.ts";

/** What readiness is read from. */
export interface ReadinessSources {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly presenceStore: PresenceStore;
  /** Websockets of this process; undefined where it can have none. */
  readonly connectionCount?: (() => number) | undefined;
  /** A pod that carries connections. */
  readonly pod?: { readonly isReady: () => boolean; readonly channel: PodChannel };
}

const ADVICE: Readonly<Record<NotReadyReason, string>> = {
  ...LINK_DOWN_ADVICE,
  no_window: "Start a gateway or a ws-connector with this Redis: they open the process window.",
  channel:
    "Wait: the pod subscribes anew about every second. If this lasts, look for a Redis that disconnects subscribers.",
  not_accepting: "Wait until the pod has started; one that is draining takes no connections any more.",
};

const MEMORY_ADVICE =
  "Raise maxmemory of Redis, or wait until entries expire: new sessions, Idempotency-Keys and agents are refused meanwhile.";

/** The state of a service: read within a second, also while Redis is away. */
export async function readReadiness(
  service: ServiceName,
  { link, window, presenceStore, connectionCount, pod }: ReadinessSources,
): Promise<z.infer<typeof Ready>> {
  const asked = await countAgents(window, presenceStore);
  const counts = typeof asked === "string" ? null : asked;
  const reason = typeof asked === "string" ? asked : reasonOf(pod);
  const ready = counts !== null && reason === null;
  const connections = connectionCount?.();
  const isShort = link.links.some(({ memory }) => memory.isShort);
  return {
    ok: ready,
    service,
    ready,
    online_agents: counts === null ? null : counts.ok,
    stale_agents: counts === null ? null : counts.stale + counts.critical_stale,
    ...(connections === undefined ? {} : { connections }),
    ...(reason === null ? {} : { reason }),
    ...(isShort ? { degraded: ["redis_memory"] } : {}),
    next_action: ready
      ? isShort
        ? MEMORY_ADVICE
        : fleetAdvice(counts, connections)
      : ADVICE[reason as NotReadyReason],
    privacy: PRIVACY,
  };
}

/** Asks for the open window: a service that has written nothing since a reset does not know of the new one. */
async function countAgents(
  window: ProcessWindow,
  presenceStore: PresenceStore,
): Promise<PresenceCounts | NotReadyReason> {
  try {
    await window.adopt();
    return await presenceStore.count();
  } catch (error) {
    return error instanceof ServiceError && error.cause === undefined ? "no_window" : linkDown(error).kind;
  }
}

function reasonOf(pod: ReadinessSources["pod"]): NotReadyReason | null {
  if (pod === undefined || pod.isReady()) return null;
  const { ready, downKind } = pod.channel;
  if (ready) return "not_accepting";
  return downKind ?? "channel";
}
