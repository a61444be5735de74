import slotOf from "cluster-key-slot";
import { controlKeys, partitionKeys } from "./keys.ts";
import { isUnavailable, type RedisCalls } from "./redis-calls.ts";
import type { Reply } from "./scripts.ts";

/** Number of slots in a Redis Cluster. */
export const SLOTS = 16_384;

/** Slot of the keys of the whole window. */
export const CONTROL_SLOT = slotOf(controlKeys.window);

/** The numbers of all partitions. */
export function everyPartition(partitions: number): number[] {
  return Array.from({ length: partitions }, (_, p) => p);
}

/** Partitions whose server takes no calls. The links know it, so nothing is asked of Redis. */
export function outOfReach(redis: RedisCalls, partitions: number): number[] {
  return everyPartition(partitions).filter((p) => !redis.serverOf(partitionKeys.window(p))?.up);
}

/** The slot of a partition. */
export function slotOfPartition(partition: number): number {
  return slotOf(partitionKeys.window(partition));
}

/**
 * Partition of an agent: the Redis Cluster slot of its id, modulo the number of partitions. An agent id holds no
 * braces, so it has no hash tag. Source: docs/redis.md#keys.
 */
export function partitionOf(agent: string, partitions: number): number {
  return partitions === 1 ? 0 : slotOf(agent) % partitions;
}

/**
 * Share of a limit on agents for each partition. Agents fall into partitions by chance. At three standard deviations
 * above the mean, hardly any partition is full before the whole limit is reached. With one partition the share is the
 * limit.
 */
export function shareOf(limit: number, partitions: number): number {
  if (partitions === 1) return limit;
  const mean = limit / partitions;
  return Math.ceil(mean + 3 * Math.sqrt(mean));
}

/** Results of the partitions in reach, in their order, and the partitions out of reach. */
interface Reached<T> {
  readonly found: readonly T[];
  readonly missing: readonly number[];
}

/**
 * Collects reads of all partitions from those in reach.
 * @throws ServiceError `unavailable` if none is in reach.
 * @throws any other failure of a read.
 */
export async function reachedOf<T>(reads: readonly Promise<T>[]): Promise<Reached<T>> {
  const ends = await Promise.allSettled(reads);
  const found = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const failures = ends.flatMap((end, p) => (end.status === "rejected" ? [{ p, reason: end.reason as unknown }] : []));
  const fatal = failures.find(({ reason }) => found.length === 0 || !isUnavailable(reason));
  if (fatal !== undefined) throw fatal.reason;
  return { found, missing: failures.map(({ p }) => p) };
}

/** A node of a Redis Cluster, at the address for clients. */
export interface NodeAddress {
  readonly id: string;
  readonly host: string;
  readonly port: number;
}

/** The slots of each primary, as one node sees them. */
export interface SlotMap {
  readonly primaries: readonly {
    readonly address: NodeAddress;
    /** First and last slot of each range. */
    readonly ranges: readonly (readonly [number, number])[];
  }[];
  readonly replicas: readonly NodeAddress[];
}

/** How far one node's view of the cluster can be trusted. */
interface Standing {
  /** Rises with each failover and each moved slot. */
  readonly clusterEpoch: number;
  /** False for a node that is cut off from most other nodes. */
  readonly isWhole: boolean;
}

/** One node's view of the cluster. */
export interface Word extends Standing {
  readonly map: SlotMap;
}

/**
 * Parses the answer to CLUSTER SLOTS. Pure.
 * @param askedHost replaces the node's own host if the node does not know it. Source: docs/redis.md#a-redis-cluster.
 */
export function parseSlotMap(reply: Reply, askedHost: string): SlotMap {
  const primaries = new Map<string, { readonly address: NodeAddress; readonly ranges: [number, number][] }>();
  const replicas = new Map<string, NodeAddress>();
  for (const row of reply as Reply[][]) {
    const [first, last, ...nodes] = row as [number, number, ...Reply[][]];
    const [primary, ...others] = nodes.map((node) => addressOf(node, askedHost)) as [NodeAddress, ...NodeAddress[]];
    for (const replica of others) replicas.set(replica.id, replica);
    const known = primaries.get(primary.id) ?? { address: primary, ranges: [] };
    known.ranges.push([first, last]);
    primaries.set(primary.id, known);
  }
  return { primaries: [...primaries.values()], replicas: [...replicas.values()] };
}

/** Parses the answer to CLUSTER INFO. Pure. */
export function standingOf(clusterInfo: string): Standing {
  return {
    clusterEpoch: Number(/^cluster_current_epoch:(\d+)/m.exec(clusterInfo)?.[1] ?? 0),
    isWhole: /^cluster_state:ok/m.test(clusterInfo),
  };
}

/**
 * The word to believe if nodes disagree. A former primary that was cut off knows nothing newer. A node that was made to
 * forget the others (CLUSTER FORGET) knows only its own slots. Pure.
 */
export function mostTrusted(words: readonly Word[]): Word | undefined {
  return words.toSorted(
    (a, b) =>
      Number(b.isWhole) - Number(a.isWhole) ||
      b.clusterEpoch - a.clusterEpoch ||
      servedSlots(b.map) - servedSlots(a.map),
  )[0];
}

/** Number of slots with a primary. Pure. */
export function servedSlots({ primaries }: SlotMap): number {
  const ranges = primaries.flatMap((primary) => primary.ranges);
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** Id of the primary that has a slot. Undefined if no primary has it. Pure. */
export function primaryOf({ primaries }: SlotMap, slot: number): string | undefined {
  const has = ([first, last]: readonly [number, number]) => first <= slot && slot <= last;
  return primaries.find(({ ranges }) => ranges.some(has))?.address.id;
}

/** All nodes of a map. Pure. */
export function nodesIn({ primaries, replicas }: SlotMap): NodeAddress[] {
  return [...primaries.map(({ address }) => address), ...replicas];
}

/**
 * The view to believe after a word. The epoch of a cut-off node does not count: its replica raises the epoch with each
 * attempt to be elected. Pure.
 */
export function believing(last: Word | undefined, word: Word): Word {
  return {
    ...word,
    clusterEpoch: Math.max(
      word.isWhole ? word.clusterEpoch : 0,
      isSameCluster(word, last) ? (last?.clusterEpoch ?? 0) : 0,
    ),
  };
}

/**
 * Whether a word is older than the believed view of the same cluster. So a cut-off node cannot lead the relay back.
 * Pure.
 */
export function isOutdated(word: Word, last: Word | undefined): boolean {
  return last !== undefined && word.clusterEpoch < last.clusterEpoch && isSameCluster(word, last);
}

/** A newly made cluster has other nodes, and its epochs begin again. */
function isSameCluster(word: Word, last: Word | undefined): boolean {
  const known = new Set(last === undefined ? [] : nodesIn(last.map).map(({ id }) => id));
  return nodesIn(word.map).some(({ id }) => known.has(id));
}

function addressOf([host, port, id]: Reply[], askedHost: string): NodeAddress {
  const isKnown = typeof host === "string" && host !== "" && host !== "?";
  return { id: String(id), host: isKnown ? host : askedHost, port: Number(port) };
}
