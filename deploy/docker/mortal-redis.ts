import type { ClusterNode } from "../local/cluster-node.ts";
import { EmbeddedCluster } from "../local/embedded-cluster.ts";
import { EmbeddedRedis } from "../local/embedded-redis.ts";
import { forgetLost, joinAsReplica, untilAll } from "../redis/cluster-forming.ts";

/** What befalls the Redis of the image `all`. */
export interface MortalRedis {
  readonly url: string;
  start(): Promise<void>;
  fail(): Promise<void>;
  restore(): Promise<void>;
  stop(): Promise<void>;
}

/** Dies with all that it holds, and comes back empty. */
export class OneMortalRedis extends EmbeddedRedis implements MortalRedis {
  async fail(): Promise<void> {
    await this.stop();
  }

  async restore(): Promise<void> {
    await this.start();
  }
}

/** Loses one primary after the other. */
export class MortalCluster extends EmbeddedCluster implements MortalRedis {
  readonly #dead = new Set<ClusterNode>();

  /** A primary dies without a goodbye. Resolves when its replica has its slots; at once where no primary has a replica. */
  async fail(): Promise<void> {
    const primary = await this.#primaryWithReplica();
    if (primary === undefined) return;
    this.#dead.add(primary);
    await primary.stop();
    const heir = this.otherOfShard(primary);
    await untilAll("have a primary again", this.#living, async (node) => {
      const isPrimary = node !== heir || /^master\r$/m.test(await node.ask("ROLE"));
      return isPrimary && /^cluster_state:ok/m.test(await node.ask("CLUSTER INFO"));
    });
  }

  /** The dead are back, empty, each as the replica of the one that took its place. */
  async restore(): Promise<void> {
    for (const node of this.#dead) {
      const heir = this.otherOfShard(node);
      await forgetLost(this.#living);
      await node.start();
      await joinAsReplica(node, await heir.id(), heir);
      this.#dead.delete(node);
    }
  }

  get #living(): ClusterNode[] {
    return this.nodes.filter((node) => !this.#dead.has(node));
  }

  async #primaryWithReplica(): Promise<ClusterNode | undefined> {
    for (const node of this.#living) {
      const hasReplica = !this.#dead.has(this.otherOfShard(node));
      if (hasReplica && /^master\r$/m.test(await node.ask("ROLE"))) return node;
    }
    return undefined;
  }
}
