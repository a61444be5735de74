import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import type { Degradation, NotReadyReason, Ready, RedisDownKind } from "relay-protocol/contract/responses.ts";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Handler } from "relay-runtime/http/router.ts";
import type { z } from "zod";
import { countConnections, type PodChannel } from "../channel/pod-channel.ts";
import { type PresenceCounts, type PresenceStore, sumOfCounts } from "../presence/presence.ts";
import { controlKeys, partitionKeys } from "../redis/keys.ts";
import { LINK_DOWN_ADVICE, linkDown, mostTelling } from "../redis/link-state.ts";
import { everyPartition } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow, WindowIdentity } from "./process-window.ts";

/** Start of the window and present time, Unix ms. */
export interface WindowTimes {
  readonly now: number;
  readonly windowStartedAt: number;
}

/** Uses the clock of this process. It is close enough to the clock of Redis to tell a young window from an old one. */
export function timesOf({ startedAt }: WindowIdentity): WindowTimes {
  return { now: Date.now(), windowStartedAt: startedAt };
}

/**
 * Start of a young window, to the second, or null for an older window. An agent that a young window has not seen may
 * still exist. Pure.
 */
export function youngSince({ now, windowStartedAt }: WindowTimes): string | null {
  if (now - windowStartedAt >= WINDOW_LIMITS.youngMs) return null;
  return new Date(windowStartedAt).toISOString().replace(/\.\d+/, "");
}

/** Words for the time in which an agent was not seen. Pure. */
export function inWindow(times: WindowTimes): string {
  const since = youngSince(times);
  return since === null ? "in this window" : `since this window began at ${since}`;
}

/** Advice about the connectors, by the counts of their agents. @param connections of all pods. */
export function fleetAdvice(counts: PresenceCounts, times: WindowTimes, connections = 0): string {
  if (counts.ok > 0) return "Check your target with /api/onboarding/check-online, then request a session.";
  if (connections > 0) {
    return "Connections exist, but no agent is online: the connected client is not refreshing a valid presence row. It must send a signed agent.register, then agent.heartbeat every 15 seconds.";
  }
  if (counts.stale + counts.critical_stale + counts.offline > 0) {
    return "No agent is online: connected clients must send a signed agent.heartbeat at least every 30 seconds.";
  }
  return `No agent was seen ${inWindow(times)}: connect a connector and send a signed agent.register.`;
}

/** The parts of the window that a service reaches. */
interface WindowReach {
  /** Counts of the partitions in reach. */
  readonly counts: PresenceCounts;
  /** Partitions out of reach. */
  readonly outOfReach: readonly number[];
  /** False while the open window cannot be read, and the service goes on in the known one. */
  readonly hasControl: boolean;
}

/**
 * Asks for the open window, then counts each partition. A service that has written nothing since a reset does not know
 * of the new window.
 * @returns the reason if nothing answers, or if no window is known.
 */
async function reachWindow(
  link: RedisCalls,
  window: ProcessWindow,
  presenceStore: PresenceStore,
): Promise<WindowReach | NotReadyReason> {
  const fault = await window.adoptOpenWindow().then(
    () => null,
    (error: unknown) => error,
  );
  if (fault !== null && (isWindowless(fault) || !window.isKnown)) return reachReason(fault);
  const counts = await Promise.all(
    everyPartition(window.partitions).map(async (p) => {
      if (fault !== null && sharesFault(link, p, fault)) return fault;
      return await presenceStore.countIn(p).catch((error: unknown) => error);
    }),
  );
  const answered = counts.filter(isCounts);
  if (answered.length === 0) return mostTelling(counts.map(kindOf)) ?? "no_window";
  const outOfReach = everyPartition(window.partitions).filter((p) => !isCounts(counts[p]));
  return { counts: sumOfCounts(answered), outOfReach, hasControl: fault === null };
}

/** True if Redis answered and has no open window. */
function isWindowless(fault: unknown): boolean {
  return fault instanceof ServiceError && fault.cause === undefined;
}

/**
 * True if the partition is on the server that failed for the control slot. A cluster moves slots one by one, so a fault
 * of kind `slots` is not shared.
 */
function sharesFault(link: RedisCalls, p: number, fault: unknown): boolean {
  if (linkDown(fault).kind === "slots") return false;
  return link.serverOf(partitionKeys.window(p)) === link.serverOf(controlKeys.window);
}

function isCounts(counted: unknown): counted is PresenceCounts {
  return typeof counted === "object" && counted !== null && !(counted instanceof Error);
}

function reachReason(fault: unknown): NotReadyReason {
  return kindOf(fault) ?? "no_window";
}

/** Null if Redis answered and has no open window. */
function kindOf(fault: unknown): RedisDownKind | null {
  return isWindowless(fault) ? null : linkDown(fault).kind;
}

/** Sources of the readiness. */
export interface ReadinessSources {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly presenceStore: PresenceStore;
  /** Set in a service that reads the keys file. */
  readonly keys?: { readonly isBehind: boolean };
  /** Set in a pod that carries connections. */
  readonly pod?: { readonly isReady: () => boolean; readonly channel: PodChannel };
}

const ADVICE: Readonly<Record<NotReadyReason, string>> = {
  ...LINK_DOWN_ADVICE,
  no_window: "Start a gateway or a ws-connector with this Redis: they open the process window.",
  channel:
    "Wait: the pod subscribes anew about every second. If this lasts, look for a Redis that disconnects subscribers.",
  not_accepting: "Wait until the pod has started; one that is draining takes no connections any more.",
};

/** The readiness gives the advice of the first degradation. */
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

/** Reads the state of a service. Resolves within a second, also while Redis is out of reach. */
export async function readReadiness(
  service: ServiceName,
  { link, window, presenceStore, keys, pod }: ReadinessSources,
): Promise<z.infer<typeof Ready>> {
  const [reach, connections] = await Promise.all([
    reachWindow(link, window, presenceStore),
    countConnections(link).catch(() => undefined),
  ]);
  const counts = typeof reach === "string" ? null : reach.counts;
  const missing = new Set(typeof reach === "string" ? [] : [...reach.outOfReach, ...(pod?.channel.unheard ?? [])]);
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

/**
 * Why a pod takes no connections, or null if it takes them.
 * @param isReached whether some partition both answers and is heard.
 */
function reasonOf(pod: ReadinessSources["pod"], isReached: boolean): NotReadyReason | null {
  if (pod === undefined || (pod.isReady() && isReached)) return null;
  const { ready, downKind } = pod.channel;
  if (ready && isReached) return "not_accepting";
  return downKind ?? "channel";
}

/**
 * Handler of /ready. It answers 200 if Redis answers in a known window and, in a pod, the channel works. Else it throws
 * a problem document with the same members.
 */
export function readyHandler(service: ServiceName, sources: ReadinessSources): Handler<"ready"> {
  return async () => {
    const state = await readReadiness(service, sources);
    if (!state.ready) throw new ServiceError("not_ready", { members: state });
    return state;
  };
}
