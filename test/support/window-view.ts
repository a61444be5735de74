import { Cluster, type Redis } from "ioredis";
import { createLogger } from "relay-runtime/logging.ts";
import { publishedOf } from "relay-window/counters/snapshot.ts";
import { controlKeys, partitionKeys } from "relay-window/redis/keys.ts";
import { partitionOf } from "relay-window/redis/partitions.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import { type PartitionKeys, type WholeKeys, WindowKeys } from "relay-window/redis/window-keys.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { until } from "./until.ts";

/** Names of the keys of the window that is open, as it says itself. */
export async function windowKeysIn(client: Redis | Cluster, partitions = 1): Promise<WindowKeys> {
  const number = await client.hget(controlKeys.window, "number");
  const records = Array.from({ length: partitions }, (_, p) => partitionKeys.window(p));
  const generations = await Promise.all(records.map((record) => client.hget(record, "generation")));
  return new WindowKeys(Number(number), generations.map(Number));
}

/** The counters that acceptance moves, over all partitions. */
export async function countersIn(client: Redis | Cluster, partitions: number): Promise<Record<string, number>> {
  const keys = await windowKeysIn(client, partitions);
  const total: Record<string, number> = {};
  for (let p = 0; p < partitions; p += 1) {
    const counted = Object.entries(await countersOf(client, keys.partition(p)));
    for (const [name, n] of counted) total[name] = (total[name] ?? 0) + n;
  }
  return total;
}

/** The same of one. */
export async function countersOf(client: Redis | Cluster, keys: PartitionKeys): Promise<Record<string, number>> {
  const [published, counted] = [await countsIn(client, keys.published), await countsIn(client, keys.counters)];
  return Object.fromEntries(publishedOf(published, counted).counters);
}

async function countsIn(client: Redis | Cluster, key: string): Promise<Map<string, number>> {
  return new Map(Object.entries(await client.hgetall(key)).map(([name, n]) => [name, Number(n)]));
}

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

/** Source: docs/protocol.md#presence */
const WITHIN_MS = 2000;
/** What two busy cores may add before it counts as broken. */
const SLACK_MS = 1000;

/** To be called when a window was opened. Resolves when these agents are present in it, as soon as is promised. */
export async function presentAgain(view: WindowView, names: readonly string[]): Promise<void> {
  const arePresent = async () => (await Promise.all(names.map((name) => view.isConnected(name)))).every(Boolean);
  await until("all are present again", arePresent, WITHIN_MS + SLACK_MS);
}

/** Has another window be open than services know of, all that was in the last one being in it. Returns its id. */
export async function openAnotherWindow(client: Redis, partitions = 1): Promise<string> {
  const id = `win_${Math.random()}`;
  const windows = Array.from({ length: partitions }, (_, p) => partitionKeys.window(p));
  const opening = client.multi();
  for (const key of [controlKeys.window, ...windows]) opening.hset(key, "id", id);
  await opening.exec();
  return id;
}

/** The window that is open, for who only reads: it is looked for when first asked about. */
export function readingWindow(link: RedisCalls, partitions = 1): ProcessWindow {
  const logger = createLogger({ service: "test", level: "silent" });
  return new ProcessWindow({ link, partitions, deployId: null, logger });
}
