import { formCluster } from "../redis/cluster-forming.ts";
import { ClusterNode, type NodeRunner, PLAIN_NODES } from "./cluster-node.ts";
import { freePorts } from "./free-ports.ts";

const PRIMARIES = 3;

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
      await formCluster(this.#nodes);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Process ids of each primary and of its replica, as they began. */
  async shards(): Promise<[primary: number, replica: number][]> {
    const primaries = this.#nodes.slice(0, PRIMARIES);
    return await Promise.all(
      primaries.map(async (node) => [await node.pid(), await this.otherOfShard(node).pid()] as [number, number]),
    );
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
}
