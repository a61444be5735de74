import slotOf from "cluster-key-slot";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { EmbeddedCluster } from "../../deploy/local/embedded-cluster.ts";
import { beginHang, endHang, type RedisUser } from "./test-redis.ts";
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

/** Silence after which a replica takes over: shorter than where it is deployed, so that tests are quick. */
const NODE_TIMEOUT_MS = 1000;
/** So soon after they voted about a primary nodes do not vote about it again, and it holds what is written for five seconds in vain. */
const NO_VOTE_MS = 2 * NODE_TIMEOUT_MS;
/** After this long a failover that was asked for has happened, or never will: not all nodes had heard of all slots. */
const FAILOVER_MS = 6000;

/** The embedded Redis Cluster, with what can befall one. */
export class TestCluster extends EmbeddedCluster {
  readonly #others: ClusterNode[] = [];
  readonly #dead = new Set<ClusterNode>();
  readonly #hanging = new Set<ClusterNode>();
  readonly #cutOff = new Set<ClusterNode>();
  /** When each was last asked to take the place of its primary, and did. */
  readonly #tookOverAt = new Map<ClusterNode, number>();
  /** Where slots go that are being moved. */
  readonly #moves = new Map<number, { readonly from: ClusterNode; readonly to: ClusterNode }>();

  constructor(options: ConstructorParameters<typeof EmbeddedCluster>[0] = {}) {
    super({ nodeTimeoutMs: NODE_TIMEOUT_MS, ...options });
  }

  /** Where someone who may do everything connects. */
  get adminUrl(): string {
    return this.url;
  }

  /** `REDIS_URL` of one user; these nodes tell none from another. */
  urlFor(_user: RedisUser): string {
    return this.url;
  }

  /** As whom keys are brought to another node: words of MIGRATE. */
  protected get migrant(): string {
    return "";
  }

  override async start(): Promise<void> {
    await super.start();
    for (const node of this.nodes) await staysReplica(node);
  }

  override async stop(): Promise<void> {
    await Promise.all([super.stop(), ...this.#others.splice(0).map((node) => node.stop())]);
    this.#dead.clear();
    for (const node of this.#hanging) endHang(node);
    this.#hanging.clear();
    this.#cutOff.clear();
    this.#moves.clear();
  }

  /** Which node has a slot, as far as the others know. @param of a slot, or a key in it. */
  async primaryOf(of: number | string): Promise<ClusterNode> {
    const slot = typeof of === "string" ? slotOf(of) : of;
    const owner = ownerIn(await seenBy(this.#living()[0] as ClusterNode), slot);
    if (owner === undefined) throw new Error(`No node has slot ${slot}.`);
    return this.#nodeAt(owner.port);
  }

  /** All that have slots. */
  async primaries(): Promise<ClusterNode[]> {
    const seen = await seenBy(this.#living()[0] as ClusterNode);
    return seen.filter(isServing).map(({ port }) => this.#nodeAt(port));
  }

  /** A living replica of a primary's. Soon after a failover the former primary may not be known as one yet. */
  async replicaOf(primary: ClusterNode): Promise<ClusterNode> {
    const replicas = async () => {
      const seen = await seenBy(primary);
      return seen.filter(({ port }) => port === primary.port).flatMap((one) => replicasOf(one, seen));
    };
    await until("the primary has a replica", async () => (await replicas()).length > 0);
    const [replica] = (await replicas()) as [SeenNode];
    return this.#nodeAt(replica.port);
  }

  /** The node dies without a goodbye. */
  async kill(node: ClusterNode): Promise<void> {
    this.#cutOff.delete(node);
    this.#dead.add(node);
    process.kill(await node.pid(), "SIGKILL");
    await node.stop();
    endHang(node);
  }

  /** The node hangs, until `resume`. */
  async pause(node: ClusterNode): Promise<void> {
    this.#hanging.add(node);
    beginHang(node);
    process.kill(await node.pid(), "SIGSTOP");
  }

  async resume(node: ClusterNode): Promise<void> {
    process.kill(await node.pid(), "SIGCONT");
    this.#hanging.delete(node);
    endHang(node);
  }

  /** What the primary is told from now on does not reach its replica, which hangs, until `resume`. */
  async beginLag(primary: ClusterNode, replica: ClusterNode): Promise<void> {
    await this.pause(replica);
    await primary.ask("CLIENT KILL TYPE replica");
  }

  /** The primary hears none of the others for a minute, and goes on answering clients as if it were alone, until `mend`. */
  async cutOff(primary: ClusterNode): Promise<void> {
    const others = (await seenBy(primary)).filter(({ port }) => port !== primary.port);
    this.#cutOff.add(primary);
    await primary.ask(...others.map(({ id }) => `CLUSTER FORGET ${id}`));
  }

  /** Resolves when the replica has received what its primary was told before. */
  async untilReceived(primary: ClusterNode, replica: ClusterNode): Promise<void> {
    const told = await offsetOf(primary);
    await until("the replica has received it", async () => (await offsetOf(replica)) >= told);
  }

  /** Resolves when all living nodes have given up that one. */
  async untilGivenUp(node: ClusterNode): Promise<void> {
    await this.#untilSeen("a node is given up", (seen) => seen.some((s) => s.port === node.port && s.hasFailed));
  }

  /** Resolves when all living nodes take it for a primary with slots. */
  async untilPrimary(node: ClusterNode): Promise<void> {
    await this.#untilSeen("a node is a primary", (seen) => isServedBy(seen, node));
  }

  /** From here on the replica takes the place of its primary by itself when that is silent, as it does where it is deployed. */
  async letTakeOver(replica: ClusterNode): Promise<void> {
    await replica.ask("CONFIG SET cluster-replica-no-failover no");
  }

  /** The replica takes the place of its primary at once, without a vote: its primary is dead, or cut off. */
  async takeOver(replica: ClusterNode): Promise<void> {
    await replica.ask("CLUSTER FAILOVER TAKEOVER");
    await this.untilPrimary(replica);
  }

  /** The replica takes the place of its primary, which lives. Nodes vote for one that knows as well as they who has which slots. */
  async failOver(replica: ClusterNode): Promise<void> {
    const lastAt = this.#tookOverAt.get(replica) ?? Number.NEGATIVE_INFINITY;
    await until("nodes vote about the primary again", () => performance.now() > lastAt + NO_VOTE_MS);
    await untilAgreed(this.#living());
    let askedAt = Number.NEGATIVE_INFINITY;
    const isDone = async () => {
      if (performance.now() > askedAt + FAILOVER_MS) {
        askedAt = performance.now();
        await replica.ask("CLUSTER FAILOVER").catch(() => {});
      }
      return (await viewsOf(this.#living())).every((seen) => isServedBy(seen, replica));
    };
    await until("the replica has taken over", isDone, 4 * FAILOVER_MS);
    this.#tookOverAt.set(replica, performance.now());
  }

  /** Another node without slots. */
  async addNode(): Promise<ClusterNode> {
    const [node] = (await this.makeNodes(1)) as [ClusterNode];
    await node.start();
    await this.#join(node);
    await untilItTakesCalls(node);
    this.#others.push(node);
    return node;
  }

  /** A node that has no slots any more ends, and is forgotten. */
  async removeNode(node: ClusterNode): Promise<void> {
    const id = await node.id();
    this.#others.splice(this.#others.indexOf(node), 1);
    await node.stop();
    await this.#forget([id]);
  }

  /**
   * What hangs goes on, and what was killed or cut off starts again, empty, as another node at the same address: with the slots
   * of a primary that was lost with its replica, else as a replica of a primary that has none. Moves of slots come to their end.
   */
  async mend(): Promise<void> {
    for (const node of this.#hanging) await this.resume(node);
    for (const node of this.#cutOff) await this.kill(node);
    for (const node of this.#dead) await this.#revive(node);
    for (const [slot, { from, to }] of this.#moves) {
      await this.moveKeys(slot, from, to);
      await this.endMove(slot, from, to);
    }
    for (const node of this.#living()) await staysReplica(node);
  }

  async moveSlot(slot: number, to: ClusterNode): Promise<void> {
    const from = await this.beginMove(slot, to);
    await this.moveKeys(slot, from, to);
    await this.endMove(slot, from, to);
  }

  /** From here on the former owner has the keys that are there, and sends whoever asks for others to the next one. */
  async beginMove(slot: number, to: ClusterNode): Promise<ClusterNode> {
    const from = await this.primaryOf(slot);
    this.#moves.set(slot, { from, to });
    await to.ask(`CLUSTER SETSLOT ${slot} IMPORTING ${await from.id()}`);
    await from.ask(`CLUSTER SETSLOT ${slot} MIGRATING ${await to.id()}`);
    return from;
  }

  async moveKeys(
    slot: number,
    from: ClusterNode,
    to: ClusterNode,
    isMoved: (key: string) => boolean = () => true,
  ): Promise<void> {
    const said = await from.ask(`CLUSTER GETKEYSINSLOT ${slot} 10000`);
    const keys = [...said.matchAll(/^\$\d+\r\n(.*)\r$/gm)].map(([, key]) => key as string).filter(isMoved);
    if (keys.length === 0) return;
    await from.ask(`MIGRATE 127.0.0.1 ${to.port} "" 0 5000 ${this.migrant} KEYS ${keys.join(" ")}`);
  }

  async endMove(slot: number, from: ClusterNode, to: ClusterNode): Promise<void> {
    const id = await to.id();
    const primaries = (await seenBy(from)).filter(({ isPrimary, hasFailed }) => isPrimary && !hasFailed);
    const others = primaries.map(({ port }) => this.#nodeAt(port)).filter((node) => node !== to && node !== from);
    for (const node of [to, from, ...others]) {
      await node.ask(`CLUSTER SETSLOT ${slot} NODE ${id}`).catch(unlessReplica);
    }
    this.#moves.delete(slot);
    await this.#untilSeen("a slot has moved", (seen) => ownerIn(seen, slot)?.port === to.port);
  }

  async #revive(node: ClusterNode): Promise<void> {
    const [any] = this.#living() as [ClusterNode];
    const before = await seenBy(any);
    for (const primary of this.#deadPrimaries(before)) {
      const heir = replicasOf(primary, before).find(({ port }) => !this.#dead.has(this.#nodeAt(port)));
      if (heir !== undefined) await this.takeOver(this.#nodeAt(heir.port));
    }
    const seen = await seenBy(any);
    const [lost] = this.#deadPrimaries(seen);
    await this.#forget(seen.filter((one) => one.port === node.port || one === lost).map(({ id }) => id));
    await node.start();
    if (lost !== undefined) await takeSlots(node, lost.slots, any);
    await this.#join(node);
    this.#dead.delete(node);
    if (lost === undefined) return await this.#replicate(node);
    await this.untilPrimary(node);
    await untilItTakesCalls(node);
  }

  /** Dead nodes that have slots. */
  #deadPrimaries(seen: readonly SeenNode[]): SeenNode[] {
    return seen.filter(({ port, slots }) => slots.length > 0 && this.#dead.has(this.#nodeAt(port)));
  }

  /** Resolves when all know a node that was just started. */
  async #join(node: ClusterNode): Promise<void> {
    const id = await node.id();
    await node.ask(...this.#living().map(({ meeting }) => `CLUSTER MEET ${meeting}`));
    await this.#untilSeen("a node is known", (seen) => seen.some((one) => one.id === id));
  }

  /** Resolves when the node follows a primary that had no replica, and all know. */
  async #replicate(node: ClusterNode): Promise<void> {
    await untilAgreed([node, ...this.#living()]);
    const seen = await seenBy(node);
    const bare = seen.find((primary) => isServing(primary) && replicasOf(primary, seen).length === 0);
    if (bare === undefined) throw new Error("Every primary has a replica.");
    await node.ask(`CLUSTER REPLICATE ${bare.id}`);
    await this.#untilSeen("a replica is known", (all) =>
      all.some(({ port, primaryId }) => port === node.port && primaryId === bare.id),
    );
    await until("it is up to date", async () => (await node.ask("INFO replication")).includes("master_link_status:up"));
  }

  async #forget(ids: readonly string[]): Promise<void> {
    for (const node of this.#living()) for (const id of ids) await node.ask(`CLUSTER FORGET ${id}`).catch(() => {});
    await this.#untilSeen("they are forgotten", (seen) => !seen.some(({ id }) => ids.includes(id)));
  }

  #living(): ClusterNode[] {
    const isAway = (node: ClusterNode) => [this.#dead, this.#hanging, this.#cutOff].some((away) => away.has(node));
    return [...this.nodes, ...this.#others].filter((node) => !isAway(node));
  }

  #nodeAt(port: number): ClusterNode {
    return [...this.nodes, ...this.#others].find((node) => node.port === port) as ClusterNode;
  }

  async #untilSeen(name: string, holds: (seen: SeenNode[]) => boolean): Promise<void> {
    await until(name, async () => (await viewsOf(this.#living())).every(holds));
  }
}

/** It does not take over because its primary stands still, as all do on a busy machine. */
async function staysReplica(node: ClusterNode): Promise<void> {
  await node.ask("CONFIG SET cluster-replica-no-failover yes");
}

/** A primary that gave its last slot away turns into a replica by itself. */
function unlessReplica(error: Error): void {
  if (!error.message.includes("only with masters")) throw error;
}
