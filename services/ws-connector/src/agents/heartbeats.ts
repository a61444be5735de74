import type { Logger } from "relay-runtime/logging.ts";
import { UNDONE } from "relay-window/acceptance/acceptance.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { HeartbeatAnswer, HeartbeatWriter, OwnedHeartbeat } from "relay-window/presence/heartbeat-writer.ts";
import { REDIS_LIMITS } from "relay-window/redis/limits.ts";
import { everyPartition } from "relay-window/redis/partitions.ts";
import type { Connection } from "../connection/connection.ts";

/** How long the text of a heartbeat waits for others, at most. */
export const BATCH_WAIT_MS = 25;
/** Most texts that go on at once. More would keep the event loop from texts that do not wait. */
export const MOST_IN_BATCH = 32;
/** Longer texts do not wait: a batch of them would take too long. */
const LONGEST_TEXT = 1024;
/** Each heartbeat has this value. In a string of another text its quotes would be escaped. */
const HEARTBEAT = '"agent.heartbeat"';

/** Whether a text may be a heartbeat. It decides only when the text is taken in. */
export function mayBeHeartbeat(text: string): boolean {
  return text.length <= LONGEST_TEXT && text.includes(HEARTBEAT);
}

/**
 * Texts of heartbeats, from all connections of a pod, that are taken in together. One alone costs about twice as much, since
 * the processor's caches hold other code by then. Source: docs/redis.md#heartbeat-writer.
 */
export class IntakeBatch {
  readonly #logger: Logger;
  #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor({ logger }: { readonly logger: Logger }) {
    this.#logger = logger;
  }

  /** @param takeIn is called once, in the order of the calls of `add`. */
  add(takeIn: () => void): void {
    this.#waiting.push(takeIn);
    if (this.#waiting.length >= MOST_IN_BATCH) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_WAIT_MS);
  }

  /** Takes in all that waits. What the caller does next comes after it. */
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

/** A heartbeat that is gathered. */
export interface GatheredHeartbeat extends OwnedHeartbeat {
  readonly connection: Connection;
  /** Called once. Null where the heartbeat is to go by acceptance, like any other. */
  readonly answered: (answer: HeartbeatAnswer) => void;
}

export interface HeartbeatsOptions {
  readonly writer: HeartbeatWriter;
  readonly channel: PodChannel;
  readonly logger: Logger;
}

/**
 * Gathers heartbeats that need no answer at once: those of agents that their connections own. They are written together, with the
 * times at which they came in, several times a second and before any register or release of their agents.
 * Source: docs/redis.md#heartbeat-writer.
 */
export class Heartbeats {
  readonly #writer: HeartbeatWriter;
  readonly #channel: PodChannel;
  /** By partition. */
  readonly #waiting: readonly GatheredHeartbeat[][];
  /** The calls that wait for their answers, each with its heartbeats. */
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

  /** Writes all that is gathered. */
  flush(): void {
    for (const [partition, waiting] of this.#waiting.entries()) {
      if (waiting.length > 0) this.#flushPartition(partition);
    }
  }

  /** Has heartbeats of a connection written before what its caller sends next. @param agent of one agent; of all without it. */
  flushOf(connection: Connection, agent?: string): void {
    const isOf = (heartbeat: GatheredHeartbeat) =>
      heartbeat.connection === connection && (agent === undefined || heartbeat.item.envelope.from === agent);
    const partitions = agent === undefined ? this.#waiting.keys() : [this.#writer.partitionOf(agent)];
    for (const partition of partitions) {
      if (this.#waiting[partition]?.some(isOf)) this.#flushPartition(partition);
    }
  }

  /** Resolves when every heartbeat of a connection that was gathered before has its answer. */
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
   * The answer of a heartbeat for which what was true when it came in is not any more: no delivery reaches its agent, which is not to
   * be called online, or its connection has lost it.
   */
  #changeSince({ item, connection, epoch }: GatheredHeartbeat): HeartbeatAnswer | undefined {
    const agent = item.envelope.from;
    if (!this.#channel.isReadyFor(agent)) return UNDONE;
    return connection.agents.ownedAgent(agent)?.epoch === epoch ? undefined : null;
  }

  /** One that fails stops no other. */
  #answer(heartbeat: GatheredHeartbeat, answer: HeartbeatAnswer): void {
    try {
      heartbeat.answered(answer);
    } catch (err) {
      this.#logger.error({ err }, "the callback of a heartbeat failed");
    }
  }
}
