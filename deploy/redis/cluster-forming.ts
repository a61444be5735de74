import { setTimeout as delay } from "node:timers/promises";

/** How Redis servers that know nobody become one cluster: what redis-cli --cluster create does, without its pauses. */

/** A server that may be asked for what clusters are made of. */
export interface ClusterMember {
  /** Where the others meet it, as CLUSTER MEET has it: an address, its port and that of the bus. */
  readonly meeting: string;
  /** Answers to inline commands, as they come. @throws {Error} when one is refused. */
  ask(...commands: readonly string[]): Promise<string>;
}

const SLOTS = 16_384;
const READY_TIMEOUT_MS = 20_000;
const POLL_MS = 20;

/**
 * Resolves when every member takes the cluster for whole.
 * @param members primaries, in the order of their slots, and then a replica of each, in the same order.
 */
export async function formCluster(members: readonly ClusterMember[]): Promise<void> {
  const half = members.length / 2;
  const [first, ...others] = members as [ClusterMember, ...ClusterMember[]];
  const primaries = members.slice(0, half);
  await Promise.all(
    primaries.map((member, n) => {
      const [begin, end] = [n, n + 1].map((part) => Math.round((part * SLOTS) / half)) as [number, number];
      // Epochs of their own spare the primaries an argument about them.
      return member.ask(`CLUSTER ADDSLOTSRANGE ${begin} ${end - 1}`, `CLUSTER SET-CONFIG-EPOCH ${n + 1}`);
    }),
  );
  await first.ask(...others.map(({ meeting }) => `CLUSTER MEET ${meeting}`));
  const ids = await untilAcquainted(members);
  await Promise.all(members.slice(half).map((replica, n) => replica.ask(`CLUSTER REPLICATE ${ids[n] as string}`)));
  await untilAll("take the cluster for whole", members, async (member) => {
    const said = await member.ask("CLUSTER INFO", "INFO replication", "CLUSTER NODES");
    const replicas = said.match(/^[0-9a-f]{40} \S+ \S*slave /gm)?.length;
    return /^cluster_state:ok/m.test(said) && !/^master_link_status:down/m.test(said) && replicas === half;
  });
}

/**
 * One that a single other knows would be lost to all when that one dies: nobody tells them of it any more.
 * @returns the members' names.
 */
export async function untilAcquainted(members: readonly ClusterMember[]): Promise<string[]> {
  const ids = await Promise.all(members.map(idOf));
  await untilAll("know each other", members, async (member) => {
    const known = await member.ask("CLUSTER NODES");
    return ids.every((id) => known.includes(id)) && !known.includes("handshake");
  });
  return ids;
}

/** @param replica knows nobody. @param known is in the cluster. */
export async function joinAsReplica(replica: ClusterMember, primaryId: string, known: ClusterMember): Promise<void> {
  await replica.ask(`CLUSTER MEET ${known.meeting}`);
  await untilAll("know their primary", [replica], async () => (await replica.ask("CLUSTER NODES")).includes(primaryId));
  await replica.ask(`CLUSTER REPLICATE ${primaryId}`);
  await untilAll("follow their primary", [replica], async () =>
    (await replica.ask("INFO replication")).includes("master_link_status:up"),
  );
  const id = await idOf(replica);
  await untilAll("see the new replica", [known], async () => {
    return new RegExp(`^${id} \\S+ \\S+ ${primaryId} `, "m").test(await known.ask("CLUSTER NODES"));
  });
}

/** The name of one that was lost is nobody's any more: it comes back under another. */
export async function forgetLost(members: readonly ClusterMember[]): Promise<void> {
  for (const member of members) {
    const known = await member.ask("CLUSTER NODES");
    const lost = [...known.matchAll(/^([0-9a-f]{40}) \S+ \S*\bfail\b(?!\?)/gm)].map(([, id]) => id);
    if (lost.length > 0) await member.ask(...lost.map((id) => `CLUSTER FORGET ${id}`));
  }
}

/** The member's name in the cluster. */
export async function idOf(member: ClusterMember): Promise<string> {
  const [id] = /^[0-9a-f]{40}\r$/m.exec(await member.ask("CLUSTER MYID")) ?? [];
  return (id as string).trim();
}

/** @throws {Error} that names what they did not come to. */
export async function untilAll<Member>(
  name: string,
  members: readonly Member[],
  holds: (member: Member) => Promise<boolean>,
): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while ((await Promise.all(members.map(holds))).includes(false)) {
    if (Date.now() > deadline) throw new Error(`The nodes of the Redis Cluster did not come to ${name}.`);
    await delay(POLL_MS);
  }
}
