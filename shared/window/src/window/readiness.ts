import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import type { Degradation, NotReadyReason, Ready } from "relay-protocol/contract/responses.ts";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { z } from "zod";
import type { PodChannel } from "../channel/pod-channel.ts";
import { countConnections } from "../channel/pod-connections.ts";
import type { PresenceCounts, PresenceStore } from "../presence/presence.ts";
import { LINK_DOWN_ADVICE } from "../redis/link-down.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { fleetAdvice, timesOf } from "./fleet-advice.ts";
import type { ProcessWindow } from "./process-window.ts";
import { reachWindow } from "./window-reach.ts";

/** What readiness is read from. */
export interface ReadinessSources {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly presenceStore: PresenceStore;
  /** Of a service that reads the keys file. */
  readonly keys?: { readonly isBehind: boolean };
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

/** The first that applies is given. */
const DEGRADED_ADVICE: Readonly<Record<Degradation, string>> = {
  control_slot:
    "Bring back the primary that has the control slot, or a replica of it; where both are gone, or came back empty, run create-cluster.ts. No service that starts is ready meanwhile; this one goes on in the window that it knows.",
  partitions:
    "Bring back the primary that has the unavailable_partitions, or a replica of it; where both are gone, or came back empty, run create-cluster.ts. Their agents are unavailable meanwhile, the others go on.",
  redis_memory:
    "Raise maxmemory of Redis, or wait until entries expire: new sessions, Idempotency-Keys and agents are refused meanwhile.",
  keys_file:
    "Make the file that RELAY_KEYS_FILE names readable and valid again: the log says what is wrong with it. The keys that were read before go on meanwhile, also those that were revoked since.",
};

/** The state of a service: read within a second, also while Redis is away. */
export async function readReadiness(
  service: ServiceName,
  { link, window, presenceStore, keys, pod }: ReadinessSources,
): Promise<z.infer<typeof Ready>> {
  const [reach, connections] = await Promise.all([
    reachWindow(link, window, presenceStore),
    countConnections(link).catch(() => undefined),
  ]);
  const counts = typeof reach === "string" ? null : reach.counts;
  const missing = new Set(typeof reach === "string" ? [] : [...reach.silent, ...(pod?.channel.unheard ?? [])]);
  const isPartial = missing.size > 0 && missing.size < window.partitions;
  const reason = typeof reach === "string" ? reach : reasonOf(pod, missing.size < window.partitions);
  const degraded: Degradation[] = [];
  if (typeof reach !== "string" && !reach.hasControl) degraded.push("control_slot");
  if (isPartial) degraded.push("partitions");
  if (link.links.some(({ memory }) => memory.isShort)) degraded.push("redis_memory");
  if (keys?.isBehind) degraded.push("keys_file");
  return {
    ok: reason === null,
    service,
    ready: reason === null,
    online_agents: counts?.ok ?? null,
    stale_agents: counts === null ? null : counts.stale + counts.critical_stale,
    ...(connections === undefined ? {} : { connections }),
    ...(reason === null ? {} : { reason }),
    ...(degraded.length === 0 ? {} : { degraded }),
    ...(isPartial ? { unavailable_partitions: [...missing].sort((a, b) => a - b) } : {}),
    next_action:
      adviceOn(reason, degraded[0]) ?? fleetAdvice(counts as PresenceCounts, timesOf(window.current), connections),
    privacy: PRIVACY,
  };
}

function adviceOn(reason: NotReadyReason | null, degradation: Degradation | undefined): string | undefined {
  if (reason !== null) return ADVICE[reason];
  return degradation === undefined ? undefined : DEGRADED_ADVICE[degradation];
}

/** Why a pod takes no connections; null where it does. @param isReached whether some partition both answers and is heard. */
function reasonOf(pod: ReadinessSources["pod"], isReached: boolean): NotReadyReason | null {
  if (pod === undefined || (pod.isReady() && isReached)) return null;
  const { ready, downKind } = pod.channel;
  if (ready && isReached) return "not_accepting";
  return downKind ?? "channel";
}
