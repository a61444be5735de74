import { Cluster, type Redis } from "ioredis";
import { partitionKeys } from "window/redis/keys.ts";
import { partitionOf } from "window/redis/partitions.ts";
import type { PartitionKeys, WholeKeys } from "window/redis/window-keys.ts";
import { until } from "./until.ts";
import { countersIn, windowKeysIn } from "./window-keys-in.ts";

/** A look into Redis past the relay's own reading of it. */
export class WindowView {
  readonly client: Redis;
  readonly #partitions: number;

  constructor(client: Redis, partitions = 1) {
    this.client = client;
    this.client.on("error", () => {});
    this.#partitions = partitions;
  }

  stop(): void {
    this.client.disconnect();
  }

  /** A client of each server that has keys. */
  async servers(): Promise<Redis[]> {
    await this.client.ping();
    const client: object = this.client;
    return client instanceof Cluster ? client.nodes("master") : [this.client];
  }

  /**
   * Kills a pod, alone; resolves when Redis has noticed. Redis may read a command before the end of the dead pod's connection, and
   * until then a publish counts the pod as a receiver.
   */
  async kill(pod: { end(signal: "SIGKILL"): Promise<unknown> }): Promise<void> {
    const before = await this.#channelCount();
    await pod.end("SIGKILL");
    await until("the dead pod's channels are gone", async () => (await this.#channelCount()) < before);
  }

  /** How many channels are heard, over all pods. */
  async #channelCount(): Promise<number> {
    const channels = (await this.servers()).map((server) => server.pubsub("SHARDCHANNELS"));
    return (await Promise.all(channels)).flat().length;
  }

  /** Names of keys, wherever they lie. */
  async names(pattern: string): Promise<string[]> {
    return (await Promise.all((await this.servers()).map((server) => server.keys(pattern)))).flat();
  }

  /** Nothing is left of what Redis had. */
  async empty(): Promise<void> {
    for (const server of await this.servers()) await server.flushall();
  }

  /** Which connection has an agent://<name>; null when none has. */
  async route(name: string): Promise<{ connection: string; epoch: number } | null> {
    const route = await this.client.hget((await this.keysOf(name)).route, `agent://${name}`);
    const [, connection, epoch] = route?.split(" ") ?? [];
    return connection === undefined ? null : { connection, epoch: Number(epoch) };
  }

  /**
   * True when a connection has the agent, in the route and in the counts alike. Over several partitions routes may stay without being
   * counted, until the lease of a pod that does not hear is over (docs/redis.md#leases-of-pods).
   */
  async isConnected(name: string): Promise<boolean> {
    const { online, route } = await this.keysOf(name);
    const agent = `agent://${name}`;
    const replies = await this.client.multi().zscore(online, agent).hget(route, agent).exec();
    const [counted, routed] = (replies ?? []).map(([, reply]) => reply !== null);
    if (counted !== routed && this.#partitions === 1) throw new Error(`Route and counts disagree about ${name}.`);
    return counted === true && routed === true;
  }

  /** Unix ms of the last register or heartbeat; null when there was none. */
  async lastSeen(name: string): Promise<number | null> {
    const score = await this.client.zscore((await this.keysOf(name)).presence, `agent://${name}`);
    return score === null ? null : Number(score);
  }

  /** The counters that acceptance moves, over all partitions. */
  async counters(): Promise<Record<string, number>> {
    return await countersIn(this.client, this.#partitions);
  }

  /** Names of the keys of a partition, in the window that is open. */
  async keys(p = 0): Promise<PartitionKeys> {
    return (await windowKeysIn(this.client, this.#partitions)).partition(p);
  }

  /** Names of the keys of what is counted for all partitions, in the window that is open. */
  async wholeKeys(): Promise<WholeKeys> {
    return (await windowKeysIn(this.client)).whole;
  }

  /** The same of the partition that an agent lies in. */
  async keysOf(name: string): Promise<PartitionKeys> {
    return await this.keys(this.partition(name));
  }

  async windowId(p = 0): Promise<string | null> {
    return await this.client.hget(partitionKeys.window(p), "id");
  }

  partition(name: string): number {
    return partitionOf(`agent://${name}`, this.#partitions);
  }
}
