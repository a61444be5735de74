import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { until } from "./until.ts";

/** A Redis Cluster as one of its nodes sees it. */

/** A node as another one sees it. */
export interface SeenNode {
  readonly id: string;
  readonly port: number;
  readonly isPrimary: boolean;
  /** Id of a replica's primary. */
  readonly primaryId: string;
  readonly hasFailed: boolean;
  /** First and last of each range. */
  readonly slots: readonly (readonly [number, number])[];
}

export async function seenBy(node: ClusterNode): Promise<SeenNode[]> {
  return (await node.ask("CLUSTER NODES")).split("\n").flatMap((line) => parseLine(line) ?? []);
}

export async function viewsOf(nodes: readonly ClusterNode[]): Promise<SeenNode[][]> {
  return await Promise.all(nodes.map(seenBy));
}

/** Resolves when these nodes say the same about the slots. */
export async function untilAgreed(nodes: readonly ClusterNode[]): Promise<void> {
  await until("all nodes agree about the slots", async () => new Set((await viewsOf(nodes)).map(slotsIn)).size === 1);
}

/** Of a primary that takes calls. */
export function isServing({ isPrimary, hasFailed, slots }: SeenNode): boolean {
  return isPrimary && !hasFailed && slots.length > 0;
}

export function isServedBy(seen: readonly SeenNode[], { port }: ClusterNode): boolean {
  return seen.some((node) => node.port === port && isServing(node));
}

/** Who has a slot. */
export function ownerIn(seen: readonly SeenNode[], slot: number): SeenNode | undefined {
  return seen.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last));
}

/** Replicas that could take the primary's place. */
export function replicasOf(primary: SeenNode, seen: readonly SeenNode[]): SeenNode[] {
  return seen.filter(({ primaryId, hasFailed }) => primaryId === primary.id && !hasFailed);
}

/** Who has which slots. */
function slotsIn(seen: readonly SeenNode[]): string {
  return JSON.stringify(
    seen
      .filter(({ slots }) => slots.length > 0)
      .map(({ port, slots }) => [port, slots])
      .sort(),
  );
}

function parseLine(line: string): SeenNode | null {
  const [, id, port, flags = "", primaryId, slots = ""] =
    /^([0-9a-f]{40}) [^:]*:(\d+)@\S+ (\S+) (\S+) \d+ \d+ \d+ \S+ ?(.*)/.exec(line.trim()) ?? [];
  if (id === undefined || primaryId === undefined) return null;
  const ranges = [...slots.matchAll(/(?<!\S)(\d+)(?:-(\d+))?(?!\S)/g)];
  return {
    id,
    port: Number(port),
    isPrimary: /\bmaster\b/.test(flags),
    primaryId,
    hasFailed: /\bfail\b(?!\?)/.test(flags),
    slots: ranges.map(([, first, last = first]) => [Number(first), Number(last)] as const),
  };
}

/** A node that was just started refuses all calls for two seconds, unless it is a replica. */
export async function untilItTakesCalls(node: ClusterNode): Promise<void> {
  await until("it takes calls", async () => (await node.ask("CLUSTER INFO")).includes("cluster_state:ok"));
}

/** How much of the stream of replication a node has. */
export async function offsetOf(node: ClusterNode): Promise<number> {
  const [, offset] = /^(?:slave_repl|master_repl)_offset:(\d+)/m.exec(await node.ask("INFO replication")) ?? [];
  return Number(offset);
}

/** An empty node takes slots: its word counts more than that of whoever had them. @param any is in the cluster. */
export async function takeSlots(node: ClusterNode, ranges: SeenNode["slots"], any: ClusterNode): Promise<void> {
  const epoch = Number(/^cluster_current_epoch:(\d+)/m.exec(await any.ask("CLUSTER INFO"))?.[1]);
  await node.ask(`CLUSTER ADDSLOTSRANGE ${ranges.flat().join(" ")}`, `CLUSTER SET-CONFIG-EPOCH ${epoch + 1}`);
}
