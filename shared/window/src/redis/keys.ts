import type { Place } from "relay-protocol/contract/refusals.ts";

/**
 * All key and channel names that outlive a window. The other names are in window-keys.ts. A hash tag decides a key's
 * slot on a Redis Cluster. All keys of a partition are in one slot. The keys of the whole window are in another slot,
 * the control slot. Every script takes keys of one slot. Source: docs/redis.md#keys.
 */

/**
 * Hash tag of each partition: its number and two letters, chosen for the resulting slot. Each tag is in the middle of
 * another one of 24 equal ranges of slots. `redis-cli --cluster create` gives each primary one range. In this order,
 * the first tags spread evenly over these ranges if the number of primaries divides the number of tags. A changed tag
 * moves its partition, with the replay guard. Source: docs/redis.md#keys.
 */
export const PARTITION_TAGS = [
  ...["0qx", "1mq", "2zm", "3fd", "4qt", "5ni", "6xm", "7hq", "8tu", "9xe", "10ei", "11va"],
  ...["12qs", "13mz", "14cq", "15sm", "16rk", "17nb", "18te", "19xu", "20vy", "21tr", "22bv", "23nf"],
] as const;

/** Prefix of every key of the relay. The window reset refuses a database that holds other keys. */
export const KEY_PREFIX = "relay:";

/** Prefix of the keys of the control slot. */
export const CONTROL_PREFIX = `${KEY_PREFIX}{0}:`;

const PARTITION_PREFIXES = PARTITION_TAGS.map((tag) => `${KEY_PREFIX}{${tag}}:`);

const PLACES: ReadonlyMap<string, Place> = new Map<string, Place>([
  [CONTROL_PREFIX, "control"],
  ...PARTITION_PREFIXES.map((prefix, p) => [prefix, p] as const),
]);

/** The place of a relay key. @returns undefined for any other key. */
export function placeOf(key: string): Place | undefined {
  return PLACES.get(key.slice(0, key.indexOf("}:") + 2));
}

/** Prefix of the keys of a partition. */
export function prefixOf(partition: number): string {
  return PARTITION_PREFIXES[partition] as string;
}

/** Keys of one partition. */
export const partitionKeys = {
  window: (p: number) => `${prefixOf(p)}window`,
  /** Pods with the time of their last lease renewal. */
  pods: (p: number) => `${prefixOf(p)}pods`,
  /** Replay guard: digests of the envelopes whose `ts` is in one span. */
  seen: (p: number, span: number) => `${prefixOf(p)}seen:${span}`,
  /** Pods that share a limit of one principal. @param digest of the principal. */
  shares: (p: number, limit: string, digest: string) => `${prefixOf(p)}shares:${limit}:${digest}`,
  /** Claim of an Idempotency-Key whose request was accepted in this partition. */
  idempotency: (p: number, digest: string) => `${prefixOf(p)}idempotency:${digest}`,
  /** Body that an Idempotency-Key is bound to, in the partition of the key's digest. */
  idempotencyBody: (p: number, digest: string) => `${prefixOf(p)}idempotency-body:${digest}`,
  /** Requests of one key or address within a minute, if they are limited. */
  limit: (p: number, of: string) => `${prefixOf(p)}limit:${of}`,
  /** Name of a channel without the pod. The scripts append the pod of a route. */
  podChannelPrefix: (p: number) => `${prefixOf(p)}pod:`,
  podChannel: (p: number, pod: string) => `${prefixOf(p)}pod:${pod}`,
} as const;

/** Keys of the control slot. */
export const controlKeys = {
  window: `${CONTROL_PREFIX}window`,
  salt: `${CONTROL_PREFIX}salt`,
  gatewayKeys: `${CONTROL_PREFIX}gateway-keys`,
  /** Pods with their numbers of connections, each with the end of its lease. */
  connections: `${CONTROL_PREFIX}connections`,
} as const;

/** Adds keys to those of a script, each once over all calls of the returned function. @returns a function that tells the place of a key in KEYS. */
export function keyNumbers(keys: string[]): (key: string) => number {
  const numbers = new Map<string, number>();
  return (key) => {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    keys.push(key);
    numbers.set(key, keys.length);
    return keys.length;
  };
}
