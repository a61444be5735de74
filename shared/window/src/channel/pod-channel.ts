import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import type { Service } from "relay-runtime/lifecycle.ts";
import { controlKeys, partitionKeys } from "../redis/keys.ts";
import { mostTelling } from "../redis/link-state.ts";
import { everyPartition, partitionOf } from "../redis/partitions.ts";
import type { RedisCalls, ServerLink, SubscribingLink } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import { type AgentLine, ServerChannel } from "./server-channel.ts";

/** Lines that arrive on the pod's channel. Source: shared/window/src/channel/server-channel.ts. */
export interface PodChannelEvents {
  /** `sessionId` is null for an envelope without a session. */
  readonly deliver: (connection: string, epoch: number, agent: string, sessionId: string | null, text: string) => void;
  readonly superseded: (connection: string, epoch: number, agent: string) => void;
  readonly probe: (connection: string, epoch: number, agent: string) => void;
  readonly disconnect: (connection: string, epoch: number, agent: string) => void;
  /** The delivery just before belongs to a sampled trace. */
  readonly traced: (traceparent: string) => void;
}

/**
 * The pod's channel for deliveries: one channel per partition, at the partition's server. If a partition moves, the pod
 * first leaves the former server, after all that it published has arrived. Then the pod listens at the new server. So
 * nothing that the former server says later counts as a delivery. Source: docs/redis.md#a-redis-cluster.
 */
export class PodChannel implements Service {
  readonly #calls: RedisCalls;
  readonly #pod: string;
  readonly #channels: readonly string[];
  readonly #servers = new Map<ServerLink, ServerChannel>();
  /** By partition: the server where the pod listens. */
  readonly #heardAt: (ServerChannel | undefined)[];
  #events: PodChannelEvents | undefined;
  /** By partition that the pod is leaving at a server. Resolves when all that was published there has arrived. */
  readonly #leaving = new Map<number, Promise<void>>();
  readonly #heardListeners: ((partition: number) => void)[] = [];
  #isPlacingDue = false;
  #placing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #startEnded: (() => void) | undefined;
  #isStopped = false;

  constructor(options: { readonly calls: RedisCalls; readonly pod: string; readonly partitions: number }) {
    const { calls, pod, partitions } = options;
    this.#calls = calls;
    this.#pod = pod;
    this.#channels = Array.from({ length: partitions }, (_, p) => partitionKeys.podChannel(p, pod));
    this.#heardAt = this.#channels.map(() => undefined);
    calls.onMoved(() => void this.#place());
  }

  get partitions(): number {
    return this.#channels.length;
  }

  /** One link to each server. */
  get links(): readonly SubscribingLink[] {
    return [...this.#servers.values()].map(({ link }) => link);
  }

  /** Why nothing arrives. Also null if no link is down but the pod's messages to itself do not come back. */
  get downKind(): RedisDownKind | null {
    return mostTelling(this.links.map(({ downKind }) => downKind));
  }

  /** True while deliveries of at least one partition arrive. */
  get ready(): boolean {
    return this.#channels.some((_, p) => this.#isHeard(p));
  }

  /** Partitions whose deliveries do not arrive. */
  get unheard(): number[] {
    return everyPartition(this.#channels.length).filter((p) => !this.#isHeard(p));
  }

  /** True while deliveries to the agent arrive. */
  isReadyFor(agent: string): boolean {
    return this.#isHeard(this.#partitionOf(agent));
  }

  listen(events: PodChannelEvents): void {
    this.#events = events;
  }

  /** Runs each time a partition's channel becomes ready. Earlier publications may not have arrived. */
  onHeard(listener: (partition: number) => void): void {
    this.#heardListeners.push(listener);
  }

  /** Resolves when the channels of all partitions are ready, when it is stopped, or after a connect timeout. */
  async start(): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      this.#startEnded = resolve;
      setTimeout(resolve, REDIS_LIMITS.connectTimeoutMs).unref();
    });
    await this.#place();
    this.#endStartOnceReady();
    if (this.#isStopped) return;
    this.#timer = setInterval(() => {
      for (const server of this.#servers.values()) void server.look();
    }, REDIS_LIMITS.loopbackIntervalMs);
    await ready;
  }

  /**
   * Resolves when all earlier publications to this pod have arrived.
   * @param agent limits the wait to the agent's partition.
   */
  async caughtUp(agent?: string): Promise<void> {
    const p = agent === undefined ? undefined : this.#partitionOf(agent);
    const servers = p === undefined ? [...this.#servers.values()] : [this.#heardAt[p]];
    const left = p === undefined ? [...this.#leaving.values()] : [this.#leaving.get(p)];
    await Promise.all([...servers.map((server) => server?.caughtUp(p)), ...left]);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    this.#startEnded?.();
    this.#heardAt.fill(undefined);
    await Promise.all([...this.#servers.values()].map((server) => server.stop()));
  }

  /**
   * Makes the pod listen to each partition at the partition's server. One run at a time. Changes during a run start
   * another one.
   */
  #place(): Promise<void> {
    this.#isPlacingDue = true;
    this.#placing ??= this.#placeAll().finally(() => {
      this.#placing = undefined;
    });
    return this.#placing;
  }

  async #placeAll(): Promise<void> {
    while (this.#isPlacingDue && !this.#isStopped) {
      this.#isPlacingDue = false;
      await Promise.all(this.#channels.map((_, p) => this.#placePartition(p)));
      await this.#stopUnused();
    }
  }

  async #placePartition(p: number): Promise<void> {
    const channel = this.#channels[p] as string;
    const server = this.#calls.serverOf(channel);
    // Nothing is published in a partition without a server.
    if (server === undefined) return;
    const [former, next] = [this.#heardAt[p], this.#at(server)];
    if (former === next) return;
    this.#heardAt[p] = undefined;
    if (former !== undefined) await this.#leave(former, p);
    if (this.#isStopped) return;
    this.#heardAt[p] = next;
    next.join(p, channel);
  }

  async #leave(former: ServerChannel, p: number): Promise<void> {
    const left = former.leave(p);
    this.#leaving.set(p, left);
    await left;
    this.#leaving.delete(p);
  }

  #at(server: ServerLink): ServerChannel {
    const known = this.#servers.get(server);
    if (known !== undefined) return known;
    const made = new ServerChannel({
      server,
      send: (...message) => this.#send(...message),
      receive: (line) => this.#receive(line),
      becameReady: (partition) => this.#becameReady(partition),
    });
    this.#servers.set(server, made);
    void made.link.start();
    return made;
  }

  /**
   * Publishes a message of the pod to itself. With several partitions it also renews the pod's lease, so that a moment
   * in which the pod is not heard costs no agent its owner. Source: docs/redis.md#leases-of-pods.
   */
  #send(p: number, message: string, pauseMs: number): Promise<unknown> {
    const channel = this.#channels[p] as string;
    if (this.#channels.length === 1) return this.#calls.command("SPUBLISH", channel, message);
    const { podLeaseMs, partitionOutOfReachMs, podLeasesKeptMs } = REDIS_LIMITS;
    const args = [this.#pod, podLeaseMs, Math.ceil(pauseMs) + partitionOutOfReachMs, podLeasesKeptMs, channel, message];
    return this.#calls.run("renew_lease", [partitionKeys.pods(p)], args);
  }

  async #stopUnused(): Promise<void> {
    const unused = [...this.#servers].filter(([, { isUnused }]) => isUnused);
    for (const [server] of unused) this.#servers.delete(server);
    await Promise.all(unused.map(([, channel]) => channel.stop()));
  }

  #becameReady(partition: number): void {
    this.#endStartOnceReady();
    for (const listener of this.#heardListeners) listener(partition);
  }

  #endStartOnceReady(): void {
    if (this.unheard.length === 0) this.#startEnded?.();
  }

  #receive(line: AgentLine): void {
    if (line.kind === "deliver") {
      this.#events?.deliver(line.connection, line.epoch, line.agent, line.sessionId, line.text);
    } else if (line.kind === "traced") {
      this.#events?.traced(line.traceparent);
    } else {
      this.#events?.[line.kind](line.connection, line.epoch, line.agent);
    }
  }

  #isHeard(p: number): boolean {
    return this.#heardAt[p]?.isReady(p) ?? false;
  }

  #partitionOf(agent: string): number {
    return partitionOf(agent, this.#channels.length);
  }
}

/**
 * Writes the number of this pod's connections, under a lease. Source: docs/redis.md#leases-of-pods.
 * @throws ServiceError `unavailable`.
 */
export async function leaseConnections(link: RedisCalls, pod: string, connections: number): Promise<void> {
  await link.run("lease_connections", [controlKeys.connections], [pod, connections, REDIS_LIMITS.shareLeaseMs]);
}

/** Number of connections of all pods with a lease. @throws ServiceError `unavailable`. */
export async function countConnections(link: RedisCalls): Promise<number> {
  const told = (await link.command("HGETALL", controlKeys.connections)) as string[];
  // Pairs of a pod and `connections end`.
  return told.reduce((sum, text, n) => (n % 2 === 0 ? sum : sum + Number(text.split(" ")[0])), 0);
}
