import { readFile } from "node:fs/promises";
import { join } from "node:path";
import slotOf from "cluster-key-slot";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { EmbeddedCluster } from "../../deploy/local/embedded-cluster.ts";
import { until } from "./until.ts";

/** A node as another one sees it. */
interface SeenNode {
  readonly id: string;
  readonly port: number;
  readonly isPrimary: boolean;
  /** Id of a replica's primary. */
  readonly primaryId: string;
  readonly hasFailed: boolean;
  /** First and last of each range. */
  readonly slots: readonly (readonly [number, number])[];
}

/** Silence after which a replica takes over: shorter than where it is deployed, so that tests are quick. */
const NODE_TIMEOUT_MS = 1000;
/** After this long a failover that was asked for has happened, or never will: not all nodes had heard of all slots. */
const FAILOVER_MS = 6000;

/** The embedded Redis Cluster, with what can befall one. */
export class TestCluster extends EmbeddedCluster {
  readonly #others: ClusterNode[] = [];
  /** Nodes that were killed or hang. */
  readonly #silent = new Set<ClusterNode>();

  constructor(options: ConstructorParameters<typeof EmbeddedCluster>[0] = {}) {
    super({ nodeTimeoutMs: NODE_TIMEOUT_MS, ...options });
  }

  /** As whom keys are brought to another node: words of MIGRATE. */
  protected get migrant(): string {
    return "";
  }

  override async stop(): Promise<void> {
    await Promise.all([super.stop(), ...this.#others.splice(0).map((node) => node.stop())]);
    this.#silent.clear();
  }

  /** Which node has a slot, as far as the others know. @param of a slot, or a key in it. */
  async primaryOf(of: number | string): Promise<ClusterNode> {
    const slot = typeof of === "string" ? slotOf(of) : of;
    const seen = await this.#seenBy(this.#living()[0] as ClusterNode);
    const owner = seen.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last));
    if (owner === undefined) throw new Error(`No node has slot ${slot}.`);
    return this.#nodeAt(owner.port);
  }

  /** A living replica of a primary's. */
  async replicaOf(primary: ClusterNode): Promise<ClusterNode> {
    const seen = await this.#seenBy(primary);
    const id = seen.find(({ port }) => port === primary.port)?.id;
    const replica = seen.find(({ primaryId, hasFailed }) => primaryId === id && !hasFailed);
    if (replica === undefined) throw new Error("The primary has no replica.");
    return this.#nodeAt(replica.port);
  }

  /** The node dies without a goodbye. */
  async kill(node: ClusterNode): Promise<void> {
    this.#silent.add(node);
    process.kill(await pidOf(node), "SIGKILL");
    await node.stop();
  }

  /** The node hangs, until `resume`. */
  async pause(node: ClusterNode): Promise<void> {
    this.#silent.add(node);
    process.kill(await pidOf(node), "SIGSTOP");
  }

  async resume(node: ClusterNode): Promise<void> {
    process.kill(await pidOf(node), "SIGCONT");
    this.#silent.delete(node);
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
    await this.#untilSeen("a node is a primary", (seen) => isPrimaryIn(seen, node));
  }

  /** The replica takes the place of its primary, which lives. Nodes vote for one that knows as well as they who has which slots. */
  async failOver(replica: ClusterNode): Promise<void> {
    await until("all nodes agree about the slots", async () => new Set((await this.#views()).map(slotsIn)).size === 1);
    let askedAt = Number.NEGATIVE_INFINITY;
    const isDone = async () => {
      if (performance.now() > askedAt + FAILOVER_MS) {
        askedAt = performance.now();
        await replica.ask("CLUSTER FAILOVER").catch(() => {});
      }
      return (await this.#views()).every((seen) => isPrimaryIn(seen, replica));
    };
    await until("the replica has taken over", isDone, 4 * FAILOVER_MS);
  }

  /** Another node without slots. */
  async addNode(): Promise<ClusterNode> {
    const [node] = (await this.makeNodes(1)) as [ClusterNode];
    this.#others.push(node);
    await node.start();
    const [any] = this.#living() as [ClusterNode];
    await node.ask(`CLUSTER MEET 127.0.0.1 ${any.port} ${any.busPort}`);
    await this.#untilSeen("a node is known", (seen) => seen.some(({ port }) => port === node.port));
    await until("it takes calls", async () => (await node.ask("CLUSTER INFO")).includes("cluster_state:ok"));
    return node;
  }

  async moveSlot(slot: number, to: ClusterNode): Promise<void> {
    const from = await this.beginMove(slot, to);
    await this.moveKeys(slot, from, to);
    await this.endMove(slot, from, to);
  }

  /** From here on the former owner has the keys that are there, and sends whoever asks for others to the next one. */
  async beginMove(slot: number, to: ClusterNode): Promise<ClusterNode> {
    const from = await this.primaryOf(slot);
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
    const primaries = (await this.#seenBy(from)).filter(({ isPrimary, hasFailed }) => isPrimary && !hasFailed);
    const others = primaries.map(({ port }) => this.#nodeAt(port)).filter((node) => node !== to && node !== from);
    for (const node of [to, from, ...others]) {
      await node.ask(`CLUSTER SETSLOT ${slot} NODE ${id}`).catch(unlessReplica);
    }
  }

  #living(): ClusterNode[] {
    return [...this.nodes, ...this.#others].filter((node) => !this.#silent.has(node));
  }

  #nodeAt(port: number): ClusterNode {
    return [...this.nodes, ...this.#others].find((node) => node.port === port) as ClusterNode;
  }

  async #seenBy(node: ClusterNode): Promise<SeenNode[]> {
    return (await node.ask("CLUSTER NODES")).split("\n").flatMap((line) => parseSeen(line) ?? []);
  }

  async #untilSeen(name: string, holds: (seen: SeenNode[]) => boolean): Promise<void> {
    await until(name, async () => (await this.#views()).every(holds));
  }

  async #views(): Promise<SeenNode[][]> {
    return await Promise.all(this.#living().map((node) => this.#seenBy(node)));
  }
}

function isPrimaryIn(seen: readonly SeenNode[], node: ClusterNode): boolean {
  return seen.some(({ port, isPrimary, slots }) => port === node.port && isPrimary && slots.length > 0);
}

/** A primary that gave its last slot away turns into a replica by itself. */
function unlessReplica(error: Error): void {
  if (!error.message.includes("only with masters")) throw error;
}

function slotsIn(seen: readonly SeenNode[]): string {
  return JSON.stringify(
    seen
      .filter(({ slots }) => slots.length > 0)
      .map(({ port, slots }) => [port, slots])
      .sort(),
  );
}

/** A line of CLUSTER NODES. */
function parseSeen(line: string): SeenNode | null {
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

/** How much of the stream of replication a node has. */
async function offsetOf(node: ClusterNode): Promise<number> {
  const [, offset] = /^(?:slave_repl|master_repl)_offset:(\d+)/m.exec(await node.ask("INFO replication")) ?? [];
  return Number(offset);
}

async function pidOf(node: ClusterNode): Promise<number> {
  return Number(await readFile(join(node.folder, "redis.pid"), "utf8"));
}
