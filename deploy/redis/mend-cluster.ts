import { type ClusterMember, idOf, joinAsReplica, untilAcquainted, untilAll } from "./cluster-forming.ts";
import {
  formatSlots,
  nodesIn,
  partsOf,
  primaryWithFewestReplicas,
  rangesOf,
  type SeenNode,
  slotsWithoutOwner,
} from "./cluster-view.ts";

/** How a Redis Cluster takes in nodes that came back empty. Source: docs/operations.md#a-shard-that-is-lost. */

/**
 * Slots without an owner get empty nodes as primaries; the other empty nodes become replicas.
 * @param known those that are in the cluster. @param empty those that know nobody. Together all nodes that there are.
 * @returns what was done.
 * @throws {Error} when slots are left without an owner, or when it cannot be told who is gone.
 */
export async function mendCluster(
  known: readonly [ClusterMember, ...ClusterMember[]],
  empty: readonly ClusterMember[],
): Promise<string> {
  const wereStrangers = await introduce(known);
  await forgetGone(known);
  const lost = await slotsLostTo(known);
  const parts = lost.length === 0 ? [] : partsOf(lost, await missingPrimaries(known, empty));
  const owned = parts.slice(0, empty.length);
  for (const [n, slots] of owned.entries()) await joinAsPrimary(empty[n] as ClusterMember, slots, known);
  const replicas = empty.slice(owned.length);
  for (const replica of replicas) await joinFewest(replica, known);
  const idle = await withoutSlots(known);
  for (const member of idle) await followFewest(member, known);
  await untilAcquainted([...known, ...empty]);
  const left = parts.slice(owned.length).flat();
  const following = replicas.length + idle.length;
  const done = [
    ...(wereStrangers ? ["all nodes know each other again"] : []),
    ...owned.map(tookOver),
    ...(following === 0 ? [] : [follow(following)]),
  ];
  if (left.length > 0) throw new Error([...done, noOwner(left)].join("\n"));
  return done.join("\n") || "cluster is whole";
}

/**
 * Members that know each other, or a node in common, even one that is gone, are of one cluster, and have to know each other. One
 * is not known to the others where the only node that had met it died before it told them: they would neither count its vote
 * nor see its slots. Members without a node in common are of two clusters, which nothing joins.
 * @returns whether any did not know another.
 */
async function introduce(known: readonly ClusterMember[]): Promise<boolean> {
  const ids = await Promise.all(known.map(idOf));
  const seen = await Promise.all(known.map(async (member) => new Set((await seenBy(member)).map(({ id }) => id))));
  const knows = (n: number, m: number) => seen[n]?.has(ids[m] as string) === true;
  const areRelated = (n: number, m: number) => [...(seen[n] ?? [])].some((id) => seen[m]?.has(id));
  for (const [n, member] of known.entries()) {
    const strangers = known.filter((_, m) => !knows(m, n) && areRelated(n, m) && (knows(n, m) || n < m));
    for (const { meeting } of strangers) await member.ask(`CLUSTER MEET ${meeting}`);
  }
  await untilAcquainted(known);
  return known.some((_, n) => known.some((_, m) => !knows(n, m)));
}

/**
 * All nodes that there are answer, and nothing is on their disks. So one that the cluster knows and that is none of them has
 * lost what it had, and comes back under another name, if at all.
 */
async function forgetGone(known: readonly ClusterMember[]): Promise<void> {
  const here = new Set(await Promise.all(known.map(idOf)));
  const isGone = ({ id }: SeenNode) => !here.has(id);
  await untilAll("miss those that are away: REDIS_URL has to name every node", known, async (member) =>
    (await seenBy(member)).filter(isGone).every(({ flags }) => flags.some((flag) => /^(fail\??|noaddr)$/.test(flag))),
  );
  await followThoseHere(known, here);
  for (const member of known) {
    const gone = (await seenBy(member)).filter(isGone);
    if (gone.length > 0) await member.ask(...gone.map(({ id }) => `CLUSTER FORGET ${id}`));
  }
}

/** Waits for an election, if there can be one. Else, and when it elects nobody, a replica takes the place of its primary. */
async function followThoseHere(known: readonly ClusterMember[], here: ReadonlySet<string>): Promise<void> {
  const goneLeaderOf = async (member: ClusterMember) => {
    const leader = (await seenBy(member)).find(({ flags }) => flags.includes("myself"))?.primary;
    return leader === undefined || here.has(leader) ? undefined : leader;
  };
  const isLed = async (member: ClusterMember) => (await goneLeaderOf(member)) === undefined;
  const views = await Promise.all(known.map(seenBy));
  if (views.every((seen) => canElect(seen, here))) {
    await untilAll("elect who follows a primary that is gone", known, isLed).catch(() => {});
  }
  const leaders = await Promise.all(known.map(goneLeaderOf));
  const heirs = known.filter((_, n) => leaders[n] !== undefined && leaders.indexOf(leaders[n]) === n);
  for (const heir of heirs) await heir.ask("CLUSTER FAILOVER TAKEOVER");
  await untilAll("follow those that took over", known, isLed);
}

/**
 * Most primaries have to be here to vote. They do not vote about a primary at whose address an empty node answers: Redis never
 * calls it failed.
 */
function canElect(seen: readonly SeenNode[], here: ReadonlySet<string>): boolean {
  const primaries = seen.filter(({ slots }) => slots.length > 0);
  const gone = primaries.filter(({ id }) => !here.has(id));
  return gone.length < primaries.length / 2 && !gone.some(({ flags }) => flags.includes("noaddr"));
}

/** Those that nobody claims, as soon as all say the same. */
async function slotsLostTo(known: readonly ClusterMember[]): Promise<number[]> {
  const views = async () => await Promise.all(known.map(async (member) => slotsWithoutOwner(await seenBy(member))));
  await untilAll("agree which slots have an owner", [views], async () => {
    return new Set((await views()).map(formatSlots)).size === 1;
  });
  return (await views())[0] as number[];
}

/** Half of all nodes are primaries. */
async function missingPrimaries(known: readonly ClusterMember[], empty: readonly ClusterMember[]): Promise<number> {
  const primaries = (await seenBy(known[0] as ClusterMember)).filter(({ slots }) => slots.length > 0);
  return Math.max(1, (known.length + empty.length) / 2 - primaries.length);
}

async function joinAsPrimary(
  member: ClusterMember,
  slots: readonly number[],
  known: readonly [ClusterMember, ...ClusterMember[]],
): Promise<void> {
  const epochs = (await Promise.all(known.map((one) => one.ask("CLUSTER INFO")))).map(epochIn);
  const ranges = rangesOf(slots).flat().join(" ");
  // Above every other: a node that had these slots, and is still there, gives way.
  await member.ask(`CLUSTER ADDSLOTSRANGE ${ranges}`, `CLUSTER SET-CONFIG-EPOCH ${Math.max(...epochs) + 1}`);
  await member.ask(`CLUSTER MEET ${known[0].meeting}`);
  const id = await idOf(member);
  await untilAll("see the new primary", known, async (one) => {
    return (await seenBy(one)).some((seen) => seen.id === id && seen.slots.length === slots.length);
  });
}

/** Primaries that have nothing to do, as of a creation that was interrupted. */
async function withoutSlots(known: readonly ClusterMember[]): Promise<ClusterMember[]> {
  const areIdle = await Promise.all(
    known.map(async (member) => {
      const own = (await seenBy(member)).find(({ flags }) => flags.includes("myself"));
      return own?.primary === undefined && own?.slots.length === 0;
    }),
  );
  return known.filter((_, n) => areIdle[n]);
}

async function followFewest(member: ClusterMember, known: readonly [ClusterMember, ...ClusterMember[]]): Promise<void> {
  const primary = await fewestFollowed(known[0]);
  await member.ask(`CLUSTER REPLICATE ${primary}`);
  const id = await idOf(member);
  await untilAll("see the replica", known, async (one) => {
    return (await seenBy(one)).some((seen) => seen.id === id && seen.primary === primary);
  });
}

async function joinFewest(replica: ClusterMember, known: readonly [ClusterMember, ...ClusterMember[]]): Promise<void> {
  await joinAsReplica(replica, await fewestFollowed(known[0]), known[0]);
}

/** The name of the primary that a replica is to follow. */
async function fewestFollowed(member: ClusterMember): Promise<string> {
  const primary = primaryWithFewestReplicas(await seenBy(member));
  if (primary === undefined) throw new Error("No node has slots: start all nodes anew, empty.");
  return primary;
}

async function seenBy(member: ClusterMember): Promise<SeenNode[]> {
  return nodesIn(await member.ask("CLUSTER NODES"));
}

function epochIn(info: string): number {
  return Number(/^cluster_current_epoch:(\d+)/m.exec(info)?.[1]);
}

function tookOver(slots: readonly number[]): string {
  return `slots ${formatSlots(slots)} have a new primary: what was there is lost`;
}

function follow(count: number): string {
  return count === 1
    ? "1 node is in the cluster again, as a replica"
    : `${count} nodes are in the cluster again, as replicas`;
}

function noOwner(slots: readonly number[]): string {
  return `Slots ${formatSlots(slots)} have no owner: start a replica that can be spared anew, empty, and run this again.`;
}
