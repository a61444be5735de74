import slotOf from "cluster-key-slot";
import { controlKeys, partitionKeys } from "./keys.ts";
import { isUnavailable, type RedisCalls } from "./redis-calls.ts";
import type { Reply } from "./scripts.ts";

/** How many slots a Redis Cluster has. */
export const SLOTS = 16_384;

/** The slot of what is of the whole window. */
export const CONTROL_SLOT = slotOf(controlKeys.window);

/** The numbers of so many partitions. */
export function everyPartition(partitions: number): number[] {
  return Array.from({ length: partitions }, (_, p) => p);
}

/** Those of so many partitions whose server takes no calls. Nothing is asked of it: its link says so. */
export function outOfReach(redis: RedisCalls, partitions: number): number[] {
  return everyPartition(partitions).filter((p) => !redis.serverOf(partitionKeys.window(p))?.up);
}

/** The slot that a partition lies in. */
export function slotOfPartition(partition: number): number {
  return slotOf(partitionKeys.window(partition));
}

/**
 * The partition of an agent: the slot that Redis Cluster gives its id, modulo the number of partitions. An agent id holds no
 * braces, so no part of it is taken for a hash tag. Source: docs/redis.md#keys.
 */
export function partitionOf(agent: string, partitions: number): number {
  return partitions === 1 ? 0 : slotOf(agent) % partitions;
}

/**
 * How much of a limit on agents each partition takes. Agents fall into partitions by chance: three standard deviations above
 * the mean hardly any partition is full before the whole limit is reached. With one partition it is the limit itself.
 */
export function shareOf(limit: number, partitions: number): number {
  if (partitions === 1) return limit;
  const mean = limit / partitions;
  return Math.ceil(mean + 3 * Math.sqrt(mean));
}

/** What the partitions told that are there, in their order, and which are not. */
export interface Reached<T> {
  readonly found: readonly T[];
  readonly missing: readonly number[];
}

/**
 * Reads of all partitions at once, from those that can be reached.
 * @throws ServiceError `unavailable` when none can; whatever else a read fails with.
 */
export async function reachedOf<T>(reads: readonly Promise<T>[]): Promise<Reached<T>> {
  const ends = await Promise.allSettled(reads);
  const found = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const failures = ends.flatMap((end, p) => (end.status === "rejected" ? [{ p, reason: end.reason as unknown }] : []));
  const fatal = failures.find(({ reason }) => found.length === 0 || !isUnavailable(reason));
  if (fatal !== undefined) throw fatal.reason;
  return { found, missing: failures.map(({ p }) => p) };
}

/** A node of a Redis Cluster, where clients reach it. */
export interface NodeAddress {
  readonly id: string;
  readonly host: string;
  readonly port: number;
}

/** Which primary has which slots, as one node sees it. */
export interface SlotMap {
  readonly primaries: readonly {
    readonly address: NodeAddress;
    /** First and last of each range. */
    readonly ranges: readonly (readonly [number, number])[];
  }[];
  readonly replicas: readonly NodeAddress[];
}

/** How much one node's word about the cluster is worth. */
export interface Standing {
  /** Rises with each failover and each slot that was moved. */
  readonly clusterEpoch: number;
  /** False for a node that is cut off from most of the others. */
  readonly isWhole: boolean;
}

/** What one node says. */
export interface Word extends Standing {
  readonly map: SlotMap;
}

/**
 * Reads the answer to CLUSTER SLOTS. Pure.
 * @param askedHost stands in for a host that the node does not know, its own. Source: docs/redis.md#a-redis-cluster.
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

/** Reads the answer to CLUSTER INFO. Pure. */
export function standingOf(clusterInfo: string): Standing {
  return {
    clusterEpoch: Number(/^cluster_current_epoch:(\d+)/m.exec(clusterInfo)?.[1] ?? 0),
    isWhole: /^cluster_state:ok/m.test(clusterInfo),
  };
}

/**
 * Of nodes that disagree, whose word counts: a former primary that was cut off knows of nothing since, and one that was made to forget
 * the others (CLUSTER FORGET) knows of its own slots alone. Pure.
 */
export function mostTrusted(words: readonly Word[]): Word | undefined {
  return words.toSorted(
    (a, b) =>
      Number(b.isWhole) - Number(a.isWhole) ||
      b.clusterEpoch - a.clusterEpoch ||
      servedSlots(b.map) - servedSlots(a.map),
  )[0];
}

/** How many slots have a primary. Pure. */
export function servedSlots({ primaries }: SlotMap): number {
  const ranges = primaries.flatMap((primary) => primary.ranges);
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** The id of the primary that has a slot; undefined where nobody has it. Pure. */
export function primaryOf({ primaries }: SlotMap, slot: number): string | undefined {
  const has = ([first, last]: readonly [number, number]) => first <= slot && slot <= last;
  return primaries.find(({ ranges }) => ranges.some(has))?.address.id;
}

/** Every node that a map names. Pure. */
export function nodesIn({ primaries, replicas }: SlotMap): NodeAddress[] {
  return [...primaries.map(({ address }) => address), ...replicas];
}

/**
 * What is believed after a word. The epoch of a node that is cut off does not count: its replica raises it by itself, with each
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

/** Whether a word about the cluster that is believed in is older than that: nobody who was cut off leads the relay back. Pure. */
export function isOutdated(word: Word, last: Word | undefined): boolean {
  return last !== undefined && word.clusterEpoch < last.clusterEpoch && isSameCluster(word, last);
}

/** A cluster that was made anew has other nodes, and epochs that begin anew. */
function isSameCluster(word: Word, last: Word | undefined): boolean {
  const known = new Set(last === undefined ? [] : nodesIn(last.map).map(({ id }) => id));
  return nodesIn(word.map).some(({ id }) => known.has(id));
}

function addressOf([host, port, id]: Reply[], askedHost: string): NodeAddress {
  const isKnown = typeof host === "string" && host !== "" && host !== "?";
  return { id: String(id), host: isKnown ? host : askedHost, port: Number(port) };
}
