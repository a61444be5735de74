import type { Place } from "relay-protocol/contract/refusals.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { controlKeys } from "../redis/keys.ts";
import { CONTROL_SLOT, slotOfPartition } from "../redis/partitions.ts";
import type { Promotion, RedisCalls } from "../redis/redis-calls.ts";
import type { WindowKeys } from "../redis/window-keys.ts";
import type { ProcessWindow } from "./process-window.ts";

/** Unix ms by place: data since then may be missing there. Source: docs/reports.md#complete. */
export type LostSince = ReadonlyMap<Place, number>;

/**
 * Notes in the control slot which places a replica took over without being asked, and logs it. Every process that sees
 * a promotion notes it once it reaches the primary of the control slot. The earliest time counts.
 */
export function notePromotions(link: RedisCalls, window: ProcessWindow, logger: Logger): void {
  const unnoted = new Map<Place, number>();
  link.onPromotion((promotion) => {
    const places = placesOf(promotion, window.partitions);
    if (places.length === 0) return;
    for (const place of places) {
      unnoted.set(place, Math.min(promotion.lackingSince, unnoted.get(place) ?? Number.POSITIVE_INFINITY));
    }
    logger.warn({ link: link.name, places }, "a replica was promoted: what its primary took last may be lacking");
  });
  // Runs after a promotion and after each link that goes up, until the note is written.
  link.onUsable(async () => {
    if (unnoted.size === 0) return;
    const noted = new Map(unnoted);
    await recordPromotions(link, window, noted);
    for (const [place, since] of noted) if (unnoted.get(place) === since) unnoted.delete(place);
  });
}

/**
 * Promotions that this process saw itself. Its own reports count them at once: the note may not have reached the
 * control slot yet.
 */
export class SeenPromotions {
  /** The last promotion of each place. Times are monotonic ms. */
  readonly #seen = new Map<Place, { readonly lackingSince: number; readonly seenAt: number }>();

  constructor(link: RedisCalls, partitions: number) {
    link.onPromotion((promotion) => {
      const seen = { lackingSince: promotion.lackingSince, seenAt: performance.now() };
      for (const place of placesOf(promotion, partitions)) this.#seen.set(place, seen);
    });
  }

  /**
   * The promotions since a window began to keep state.
   * @param keys of that window.
   * @param now Unix ms by the clock of Redis.
   */
  in(keys: WindowKeys, now: number): LostSince {
    const unixTimeOf = (monotonicMs: number) => Math.floor(now - (performance.now() - monotonicMs));
    const seen = [...this.#seen].filter(([, { seenAt }]) => unixTimeOf(seenAt) > beginningOf(keys));
    // `lackingSince` is not finite if this process never reached the former primary, or never knew it to have replicas.
    // Then all data since the beginning may be missing.
    const sinceOf = (lackingSince: number) =>
      Number.isFinite(lackingSince) ? unixTimeOf(lackingSince) : beginningOf(keys);
    return new Map(seen.map(([place, { lackingSince }]) => [place, sinceOf(lackingSince)]));
  }
}

/** @param lackingSince by place: `lackingSince` of a promotion. @throws ServiceError `unavailable`. */
export async function recordPromotions(
  link: RedisCalls,
  window: ProcessWindow,
  lackingSince: ReadonlyMap<Place, number>,
): Promise<void> {
  await window.inWindow(async ({ id }) => {
    const ages = [...lackingSince].flatMap(([place, since]) => [
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

/** Finds what a window may lack, from its key names and the noted promotions. Pure. */
export function lostSinceOf(keys: WindowKeys, promoted: string): LostSince {
  const { number, generations } = keys;
  const lostSince = new Map<Place, number>();
  for (const [, place, since] of promoted.matchAll(/(\w+)@(\d+) /g)) {
    lostSince.set(place === "control" ? place : Number(place), Number(since));
  }
  // In a window that began empty, all state is as old as the window. A later generation shows a loss.
  const began = beginningOf(keys);
  for (const [p, generation] of generations.entries()) {
    if (generation !== null && generation > began) lostSince.set(p, generation);
  }
  if (number > Math.max(...knownIn(keys))) lostSince.set("control", number);
  return lostSince;
}

/** Unix ms: start of the oldest state that no loss has ended. */
function beginningOf(keys: WindowKeys): number {
  return Math.min(...knownIn(keys));
}

function knownIn({ generations }: WindowKeys): number[] {
  return generations.filter((generation) => generation !== null);
}
