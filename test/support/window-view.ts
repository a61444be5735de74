import { Redis } from "ioredis";
import { partitionKeys } from "window/redis/keys.ts";
import { partitionOf } from "window/redis/partitions.ts";
import type { PartitionKeys, WholeKeys } from "window/redis/window-keys.ts";
import { countersIn, windowKeysIn } from "./window-keys-in.ts";

/** A look into Redis past the relay's own reading of it. */
export class WindowView {
  readonly client: Redis;
  readonly #partitions: number;

  /** @param address a socket's path or a URL. */
  constructor(address: string, partitions = 1) {
    this.client = new Redis(address, { replyMapping: "legacy" });
    this.client.on("error", () => {});
    this.#partitions = partitions;
  }

  stop(): void {
    this.client.disconnect();
  }

  /** Which connection has an agent://<name>; null when none has. */
  async route(name: string): Promise<{ connection: string; epoch: number } | null> {
    const route = await this.client.hget((await this.keys(this.partition(name))).route, `agent://${name}`);
    const [, connection, epoch] = route?.split(" ") ?? [];
    return connection === undefined ? null : { connection, epoch: Number(epoch) };
  }

  /** True when a connection has the agent, in the route and in the counts alike. */
  async isConnected(name: string): Promise<boolean> {
    const { online, route } = await this.keys(this.partition(name));
    const agent = `agent://${name}`;
    const replies = await this.client.multi().zscore(online, agent).hget(route, agent).exec();
    const [counted, routed] = (replies ?? []).map(([, reply]) => reply !== null);
    if (counted !== routed) throw new Error(`Route and counts disagree about ${name}.`);
    return routed === true;
  }

  /** Unix ms of the last register or heartbeat; null when there was none. */
  async lastSeen(name: string): Promise<number | null> {
    const score = await this.client.zscore((await this.keys(this.partition(name))).presence, `agent://${name}`);
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

  async windowId(p = 0): Promise<string | null> {
    return await this.client.hget(partitionKeys.window(p), "id");
  }

  partition(name: string): number {
    return partitionOf(`agent://${name}`, this.#partitions);
  }
}
