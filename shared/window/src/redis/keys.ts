import type { Place } from "relay-protocol/contract/refusals.ts";

/**
 * The hash tag of each partition: its number and two letters, chosen for the slot that they give it. Of the 24 equal ranges of
 * slots each tag lies in the middle of another, and in this order, so that so many of the first tags as primaries divide lie
 * evenly over the ranges that `redis-cli --cluster create` gives these. A tag that changes moves its partition, the replay
 * guard included. Source: docs/redis.md#keys.
 */
export const PARTITION_TAGS = [
  ...["0qx", "1mq", "2zm", "3fd", "4qt", "5ni", "6xm", "7hq", "8tu", "9xe", "10ei", "11va"],
  ...["12qs", "13mz", "14cq", "15sm", "16rk", "17nb", "18te", "19xu", "20vy", "21tr", "22bv", "23nf"],
] as const;

/** Adds keys to those of a script, each once. @returns a function that tells the place of a key in KEYS. */
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

/**
 * Every key and channel name of the relay that outlives a window, once; window-keys.ts has the others. A hash tag names the slot
 * that a key has on a Redis Cluster: all keys of a partition lie in one, what is of the whole window in another, the control
 * slot. Every script takes keys of one slot. Source: docs/redis.md#keys.
 */

/** What every key of the relay begins with; the window reset refuses a database that holds others. */
export const KEY_PREFIX = "relay:";

/** Of the keys of the control slot. */
export const CONTROL_PREFIX = `${KEY_PREFIX}{0}:`;

const PARTITION_PREFIXES = PARTITION_TAGS.map((tag) => `${KEY_PREFIX}{${tag}}:`);

const PLACES: ReadonlyMap<string, Place> = new Map<string, Place>([
  [CONTROL_PREFIX, "control"],
  ...PARTITION_PREFIXES.map((prefix, p) => [prefix, p] as const),
]);

/** Where a key of the relay's lies; undefined of any other. */
export function placeOf(key: string): Place | undefined {
  return PLACES.get(key.slice(0, key.indexOf("}:") + 2));
}

/** Of the keys of a partition. */
export function prefixOf(partition: number): string {
  return PARTITION_PREFIXES[partition] as string;
}

/** Keys of one partition. */
export const partitionKeys = {
  window: (p: number) => `${prefixOf(p)}window`,
  /** The pods, and when each renewed its lease last. */
  pods: (p: number) => `${prefixOf(p)}pods`,
  /** Replay guard: digests of the envelopes whose `ts` lies in one span. */
  seen: (p: number, span: number) => `${prefixOf(p)}seen:${span}`,
  /** The pods that share a limit of one principal, a digest. */
  shares: (p: number, limit: string, digest: string) => `${prefixOf(p)}shares:${limit}:${digest}`,
  /** The claim of an Idempotency-Key whose request was accepted in this partition. */
  idempotency: (p: number, digest: string) => `${prefixOf(p)}idempotency:${digest}`,
  /** The body that an Idempotency-Key is bound to, in the partition of its digest. */
  idempotencyBody: (p: number, digest: string) => `${prefixOf(p)}idempotency-body:${digest}`,
  /** Requests that one key or address made within a minute, where they are limited. */
  limit: (p: number, of: string) => `${prefixOf(p)}limit:${of}`,
  /** A channel's name less the pod: the scripts append the pod that a route names. */
  podChannelPrefix: (p: number) => `${prefixOf(p)}pod:`,
  podChannel: (p: number, pod: string) => `${prefixOf(p)}pod:${pod}`,
} as const;

/** Keys of the control slot. */
export const controlKeys = {
  window: `${CONTROL_PREFIX}window`,
  salt: `${CONTROL_PREFIX}salt`,
  gatewayKeys: `${CONTROL_PREFIX}gateway-keys`,
  /** The pods, how many connections each has, and until when that counts. */
  connections: `${CONTROL_PREFIX}connections`,
} as const;
