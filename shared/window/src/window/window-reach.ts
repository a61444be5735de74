import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { NotReadyReason, RedisDownKind } from "relay-protocol/contract/responses.ts";
import { type PresenceCounts, type PresenceStore, sumOfCounts } from "../presence/presence.ts";
import { controlKeys, partitionKeys } from "../redis/keys.ts";
import { linkDown, mostTelling } from "../redis/link-down.ts";
import { everyPartition } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "./process-window.ts";

/** How much of the window a service reaches. */
export interface WindowReach {
  /** Of the partitions that answer. */
  readonly counts: PresenceCounts;
  /** Partitions that do not. */
  readonly silent: readonly number[];
  /** False while nobody can tell which window is open, and the one that is known is gone on with. */
  readonly hasControl: boolean;
}

/**
 * Asks for the open window, since a service that has written nothing since a reset does not know of the new one, then each
 * partition. Resolves with the reason where nothing answers, or no window is known.
 */
export async function reachWindow(
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
  const silent = everyPartition(window.partitions).filter((p) => !isCounts(counts[p]));
  return { counts: sumOfCounts(answered), silent, hasControl: fault === null };
}

/** Redis answered, and has no window that is open. */
function isWindowless(fault: unknown): boolean {
  return fault instanceof ServiceError && fault.cause === undefined;
}

/** Whether a server that cannot be used for the control slot has the partition, too. Slots come and go one by one. */
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

/** Null of a fault that is not the link's. */
function kindOf(fault: unknown): RedisDownKind | null {
  return isWindowless(fault) ? null : linkDown(fault).kind;
}
