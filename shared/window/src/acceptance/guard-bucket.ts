import { ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import { partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import type { AcceptanceItem } from "./acceptance.ts";

/** The buckets of the replay guard, each of a span of `ts`. Source: docs/redis.md#keys. */

const SPAN_MS = REDIS_LIMITS.guardBucketMs;
/** How long a bucket is kept before and after its span. */
const MARGIN_MS = ENVELOPE_LIMITS.maxClockSkewMs + ENVELOPE_LIMITS.podClockToleranceMs;

/** How far ahead the end of a bucket may lie that can hold an envelope now. */
export const GUARD_AHEAD_MS = 2 * MARGIN_MS + SPAN_MS;

export interface GuardBucket {
  readonly key: string;
  /** When it is forgotten: Unix ms. */
  readonly endsAt: number;
}

export function guardBucketOf(partition: number, item: Pick<AcceptanceItem, "envelope">): GuardBucket {
  const span = guardSpanOf(item);
  return { key: partitionKeys.seen(partition, span), endsAt: (span + 1) * SPAN_MS + MARGIN_MS };
}

/** The span that `ts` lies in. */
export function guardSpanOf({ envelope }: Pick<AcceptanceItem, "envelope">): number {
  return Math.floor(envelope.ts / SPAN_MS);
}
