import type { ProcessWindow } from "./process-window.ts";
import { controlKeys } from "./redis/keys.ts";
import { CONTROL_SLOT, slotOfPartition } from "./redis/partitions.ts";
import type { Promotion, RedisCalls } from "./redis/redis-calls.ts";
import type { WindowKeys } from "./redis/window-keys.ts";

/** Where something may be missing: a partition, or the control slot, which has what is counted for all of them. */
export type Place = number | "control";

/** Since when something may be missing in a place that lost something, Unix ms. Source: docs/reports.md#complete. */
export type Lapses = ReadonlyMap<Place, number>;

/**
 * Notes in the control slot which partitions a replica took over that nobody had asked to. All that see a promotion note it, once
 * the primary that they note it at can be reached; the earliest time counts.
 */
export function notePromotions(link: RedisCalls, window: ProcessWindow): void {
  const unnoted = new Map<Place, number>();
  link.onPromotion((promotion) => {
    for (const place of placesOf(promotion, window.partitions)) {
      unnoted.set(place, Math.min(promotion.silentSince, unnoted.get(place) ?? Number.POSITIVE_INFINITY));
    }
  });
  // A promotion comes with a primary that was none before: its link goes up.
  link.onUsable(async () => {
    if (unnoted.size === 0) return;
    const noted = new Map(unnoted);
    await recordPromotions(link, window, noted);
    for (const place of noted.keys()) unnoted.delete(place);
  });
}

/** @param silentSince of each place, as of a promotion. @throws ServiceError `unavailable`. */
export async function recordPromotions(
  link: RedisCalls,
  window: ProcessWindow,
  silentSince: ReadonlyMap<Place, number>,
): Promise<void> {
  await window.inWindow(async ({ id }) => {
    const ages = [...silentSince].flatMap(([place, since]) => [
      place,
      Number.isFinite(since) ? Math.ceil(performance.now() - since) : "",
    ]);
    const reply = await link.run("record_promotions", [controlKeys.window], [id, ...ages]);
    return reply === "window" ? null : true;
  });
}

function placesOf({ hasSlot }: Promotion, partitions: number): Place[] {
  const promoted = Array.from({ length: partitions }, (_, p) => p).filter((p) => hasSlot(slotOfPartition(p)));
  return hasSlot(CONTROL_SLOT) ? ["control", ...promoted] : promoted;
}

/** What a window may lack, by the names of its keys and what was noted of promotions. Pure. */
export function lapsesOf({ number, generations }: WindowKeys, promoted: string): Lapses {
  const lapses = new Map<Place, number>();
  for (const [, place, since] of promoted.matchAll(/(\w+)@(\d+) /g)) {
    lapses.set(place === "control" ? place : Number(place), Number(since));
  }
  // State of a window that began empty is as old as the window; what was lost since begins later.
  const known = generations.filter((generation) => generation !== null);
  const began = Math.min(...known);
  for (const [p, generation] of generations.entries()) {
    if (generation !== null && generation > began) lapses.set(p, generation);
  }
  if (number > Math.max(...known)) lapses.set("control", number);
  return lapses;
}
