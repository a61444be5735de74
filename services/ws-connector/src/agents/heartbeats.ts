import type { Logger } from "relay-runtime/logging.ts";
import { UNDONE } from "relay-window/acceptance/acceptance.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { HeartbeatAnswer, HeartbeatWriter, OwnedHeartbeat } from "relay-window/presence/heartbeat-writer.ts";
import { everyPartition } from "relay-window/redis/partitions.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import type { Connection } from "../connection/connection.ts";

/** Most ms that the text of a heartbeat waits for others. */
export const BATCH_WAIT_MS = 25;
/** Most texts taken in together. More would delay texts that do not wait. */
export const MOST_IN_BATCH = 32;
/** Longer texts do not wait, because a batch of them would take too long. */
const LONGEST_TEXT = 1024;
/** Every heartbeat contains this value. Inside a string of another text its quotes would be escaped. */
const HEARTBEAT = '"agent.heartbeat"';

/** True if a text may be a heartbeat. This decides only when the text is taken in. */
export function mayBeHeartbeat(text: string): boolean {
  return text.length <= LONGEST_TEXT && text.includes(HEARTBEAT);
}

/**
 * Takes in heartbeats of all connections of a pod together. A single heartbeat costs about twice as much, because the
 * processor's caches hold other code by then. Source: docs/redis.md#heartbeat-writer.
 */
export class IntakeBatch {
  readonly #logger: Logger;
  #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor({ logger }: { readonly logger: Logger }) {
    this.#logger = logger;
  }

  /** @param takeIn called once, in the order of the calls of `add`. */
  add(takeIn: () => void): void {
    this.#waiting.push(takeIn);
    if (this.#waiting.length >= MOST_IN_BATCH) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_WAIT_MS);
  }

  /** Takes in all waiting texts before it returns. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const takeIn of waiting) this.#takeIn(takeIn);
  }

  /** A failure stops neither the other texts nor the caller. */
  #takeIn(takeIn: () => void): void {
    try {
      takeIn();
    } catch (err) {
      this.#logger.error({ err }, "the intake of a heartbeat failed");
    }
  }
}

export interface GatheredHeartbeat extends OwnedHeartbeat {
  readonly connection: Connection;
  /** Called once. Null means that the heartbeat must go through acceptance. */
  readonly answered: (answer: HeartbeatAnswer) => void;
}

export interface HeartbeatsOptions {
  readonly writer: HeartbeatWriter;
  readonly channel: PodChannel;
  readonly logger: Logger;
}

/**
 * Gathers heartbeats of agents that their connections own; these need no answer at once. Writes them together several
 * times a second, with their times of arrival. A register or release of an agent comes after the agent's gathered
 * heartbeats. Source: docs/redis.md#heartbeat-writer.
 */
export class Heartbeats {
  readonly #writer: HeartbeatWriter;
  readonly #channel: PodChannel;
  /** By partition. */
  readonly #waiting: readonly GatheredHeartbeat[][];
  /** Calls without an answer yet, each with its heartbeats. */
  readonly #underWay = new Map<Promise<void>, readonly GatheredHeartbeat[]>();
  readonly #logger: Logger;

  constructor({ writer, channel, logger }: HeartbeatsOptions) {
    this.#writer = writer;
    this.#channel = channel;
    this.#logger = logger;
    this.#waiting = everyPartition(writer.partitions).map(() => []);
  }

  gather(heartbeat: GatheredHeartbeat): void {
    const partition = this.#writer.partitionOf(heartbeat.item.envelope.from);
    const waiting = this.#waiting[partition] as GatheredHeartbeat[];
    waiting.push(heartbeat);
    if (waiting.length === REDIS_LIMITS.routesBatch) this.#flushPartition(partition);
  }

  /** Writes all gathered heartbeats. */
  flush(): void {
    for (const [partition, waiting] of this.#waiting.entries()) {
      if (waiting.length > 0) this.#flushPartition(partition);
    }
  }

  /** Sends gathered heartbeats of a connection before the caller's next call. @param agent undefined for all agents. */
  flushOf(connection: Connection, agent?: string): void {
    const isOf = (heartbeat: GatheredHeartbeat) =>
      heartbeat.connection === connection && (agent === undefined || heartbeat.item.envelope.from === agent);
    const partitions = agent === undefined ? this.#waiting.keys() : [this.#writer.partitionOf(agent)];
    for (const partition of partitions) {
      if (this.#waiting[partition]?.some(isOf)) this.#flushPartition(partition);
    }
  }

  /** Resolves when every gathered heartbeat of a connection has its answer. */
  async settled(connection: Connection): Promise<void> {
    this.flushOf(connection);
    const calls = [...this.#underWay].filter(([, heartbeats]) =>
      heartbeats.some((one) => one.connection === connection),
    );
    await Promise.all(calls.map(([call]) => call));
  }

  #flushPartition(partition: number): void {
    const gathered = (this.#waiting[partition] as GatheredHeartbeat[]).splice(0);
    const written = this.#write(partition, gathered).finally(() => this.#underWay.delete(written));
    this.#underWay.set(written, gathered);
  }

  async #write(partition: number, gathered: readonly GatheredHeartbeat[]): Promise<void> {
    const written: GatheredHeartbeat[] = [];
    for (const heartbeat of gathered) {
      const refused = this.#changeSince(heartbeat);
      if (refused === undefined) written.push(heartbeat);
      else this.#answer(heartbeat, refused);
    }
    if (written.length === 0) return;
    const answers = await this.#writer.write(partition, written);
    for (const [n, heartbeat] of written.entries()) this.#answer(heartbeat, answers[n] as HeartbeatAnswer);
  }

  /**
   * The answer for a heartbeat that Redis must not get any more. Either no delivery reaches its agent, so the agent
   * must not count as online. Or its connection lost the agent.
   * @returns undefined if neither is so.
   */
  #changeSince({ item, connection, epoch }: GatheredHeartbeat): HeartbeatAnswer | undefined {
    const agent = item.envelope.from;
    if (!this.#channel.isReadyFor(agent)) return UNDONE;
    return connection.agents.ownedAgent(agent)?.epoch === epoch ? undefined : null;
  }

  /** A failing callback does not stop the others. */
  #answer(heartbeat: GatheredHeartbeat, answer: HeartbeatAnswer): void {
    try {
      heartbeat.answered(answer);
    } catch (err) {
      this.#logger.error({ err }, "the callback of a heartbeat failed");
    }
  }
}
