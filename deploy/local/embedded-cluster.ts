import { setTimeout as delay } from "node:timers/promises";
import { ClusterNode, type NodeRunner, PLAIN_NODES } from "./cluster-node.ts";
import { freePorts } from "./free-ports.ts";

const SLOTS = 16_384;
const PRIMARIES = 3;
const READY_TIMEOUT_MS = 20_000;
const POLL_MS = 20;

/**
 * A private Redis Cluster on loopback: three primaries with a replica each, nothing on disk. Its nodes end with this process,
 * as an embedded Redis does.
 */
export class EmbeddedCluster {
  readonly #runner: NodeRunner;
  readonly #nodeTimeoutMs: number;
  #nodes: readonly ClusterNode[] = [];

  /** @param options.nodeTimeoutMs silence after which a primary is given up for its replica. */
  constructor(options: { readonly runner?: NodeRunner; readonly nodeTimeoutMs?: number } = {}) {
    this.#runner = options.runner ?? PLAIN_NODES;
    this.#nodeTimeoutMs = options.nodeTimeoutMs ?? 3000;
  }

  /** From `start` on: at first three primaries, in the order of their slots, and then their replicas in the same order. */
  get nodes(): readonly ClusterNode[] {
    return this.#nodes;
  }

  /** `redis-cluster://…`, with every node. */
  get url(): string {
    return `redis-cluster://${this.#runner.userInfo ?? ""}${this.#nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  }

  /**
   * Resolves when every node takes the cluster for whole.
   * @throws {Error} when there is no suitable Redis on the PATH, or when the cluster does not form.
   */
  async start(): Promise<void> {
    this.#nodes = await this.makeNodes(2 * PRIMARIES);
    try {
      await Promise.all(this.#nodes.map((node) => node.start()));
      await this.#form();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Resolves when all nodes have ended and their folders are gone. May be called at any time, and again. */
  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }

  /** Nodes that are no part of the cluster, nor started. */
  protected async makeNodes(count: number): Promise<ClusterNode[]> {
    const ports = await freePorts(2 * count);
    return ports
      .slice(0, count)
      .map((port, n) => new ClusterNode(this.#runner, port, ports[count + n] as number, this.#nodeTimeoutMs));
  }

  /** Which of the two of a shard is its primary is for them to say. */
  protected otherOfShard(node: ClusterNode): ClusterNode {
    return this.#nodes[(this.#nodes.indexOf(node) + PRIMARIES) % this.#nodes.length] as ClusterNode;
  }

  /** @param replica that has been started, and knows nobody. */
  protected async joinAsReplica(replica: ClusterNode, primary: ClusterNode): Promise<void> {
    const id = await primary.id();
    await replica.ask(`CLUSTER MEET 127.0.0.1 ${primary.port} ${primary.busPort}`);
    await this.untilAll("know their primary", [replica], async () => (await replica.ask("CLUSTER NODES")).includes(id));
    await replica.ask(`CLUSTER REPLICATE ${id}`);
    await this.untilAll("follow their primary", [replica], async () =>
      (await replica.ask("INFO replication")).includes("master_link_status:up"),
    );
  }

  /** What redis-cli --cluster create does, without its pauses. */
  async #form(): Promise<void> {
    const [first, ...others] = this.#nodes as [ClusterNode, ...ClusterNode[]];
    const primaries = this.#nodes.slice(0, PRIMARIES);
    await Promise.all(
      primaries.map((node, n) => {
        const slots = [n, n + 1].map((part) => Math.round((part * SLOTS) / PRIMARIES)) as [number, number];
        // Epochs of their own spare the primaries an argument about them.
        return node.ask(`CLUSTER ADDSLOTSRANGE ${slots[0]} ${slots[1] - 1}`, `CLUSTER SET-CONFIG-EPOCH ${n + 1}`);
      }),
    );
    await first.ask(...others.map(({ port, busPort }) => `CLUSTER MEET 127.0.0.1 ${port} ${busPort}`));
    const ids = await Promise.all(this.#nodes.map((node) => node.id()));
    await this.untilAll("know each other", this.#nodes, async (node) => {
      const known = await node.ask("CLUSTER NODES");
      return ids.every((id) => known.includes(id)) && !known.includes("handshake");
    });
    await Promise.all(
      this.#nodes.slice(PRIMARIES).map((replica, n) => replica.ask(`CLUSTER REPLICATE ${ids[n] as string}`)),
    );
    await this.untilAll("take the cluster for whole", this.#nodes, async (node) => {
      const said = await node.ask("CLUSTER INFO", "INFO replication", "CLUSTER NODES");
      const replicas = said.match(/^[0-9a-f]{40} \S+ \S*slave /gm)?.length;
      return /^cluster_state:ok/m.test(said) && !/^master_link_status:down/m.test(said) && replicas === PRIMARIES;
    });
  }

  protected async untilAll(
    name: string,
    nodes: readonly ClusterNode[],
    holds: (node: ClusterNode) => Promise<boolean>,
  ): Promise<void> {
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while ((await Promise.all(nodes.map(holds))).includes(false)) {
      if (Date.now() > deadline) throw new Error(`The nodes of the Redis Cluster did not come to ${name}.`);
      await delay(POLL_MS);
    }
  }
}
