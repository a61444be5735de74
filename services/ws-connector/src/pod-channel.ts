import { randomBytes } from "node:crypto";
import { REDIS_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type { Service } from "@agent-relay/shared/lifecycle.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import { partitionKeys } from "@agent-relay/shared/window/keys.ts";
import { RedisLink } from "@agent-relay/shared/window/redis-link.ts";

/** What comes in over the pod's channel, one line each. Source: the script accept. */
export interface PodChannelEvents {
  readonly deliver: (connection: string, epoch: number, agent: string, sessionId: string, text: string) => void;
  readonly superseded: (connection: string, epoch: number, agent: string) => void;
  readonly probe: (connection: string, epoch: number, agent: string) => void;
}

/**
 * The pod's own channel. It is ready while messages that the pod sends to itself come back: a subscription may be dead
 * while its socket looks alive.
 *
 * It is given up for nothing else. While all of Redis is silent it stays: Redis still counts it as a subscriber when it
 * goes on, and what it then promises would go to a connection that nobody reads.
 */
export class PodChannel implements Service {
  /** The link that the channel is subscribed on. */
  readonly subscriber: RedisLink;
  readonly #publisher: RedisLink;
  readonly #channels: string[];
  #events: PodChannelEvents | undefined;
  #ready = false;
  #missed = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Who waits for which loop-back message. */
  readonly #awaited = new Map<string, () => void>();
  #firstLoopback: (() => void) | undefined;

  constructor(options: { url: string; publisher: RedisLink; pod: string; partitions: number; logger: Logger }) {
    const { url, publisher, pod, partitions, logger } = options;
    this.#publisher = publisher;
    this.#channels = Array.from({ length: partitions }, (_, p) => partitionKeys.podChannel(p, pod));
    this.subscriber = new RedisLink({ url, name: "ws-connector-channel", pinged: false, logger });
    this.subscriber.onReady(() => this.#subscribe());
    this.subscriber.client.on("close", () => {
      this.#ready = false;
    });
    this.subscriber.client.on("smessage", (_channel: string, message: string) => this.#receive(message));
  }

  get ready(): boolean {
    return this.#ready;
  }

  listen(events: PodChannelEvents): void {
    this.#events = events;
  }

  /** Resolves when a message came back, or after a connect timeout. */
  async start(): Promise<void> {
    const looped = new Promise<void>((resolve) => {
      this.#firstLoopback = resolve;
      setTimeout(resolve, REDIS_LIMITS.connectTimeoutMs).unref();
    });
    await this.subscriber.start();
    this.#timer = setInterval(() => void this.#watch(), REDIS_LIMITS.loopbackIntervalMs);
    await looped;
  }

  /** Resolves when all that was published to this pod before has come in, or when the channel is dead. */
  async caughtUp(): Promise<void> {
    if (!this.#ready) return;
    const id = loopbackId();
    const back = new Promise<void>((resolve) => {
      this.#awaited.set(id, resolve);
      setTimeout(resolve, REDIS_LIMITS.commandTimeoutMs).unref();
    });
    await this.#sendLoopback(id);
    await back;
    this.#awaited.delete(id);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#ready = false;
    await this.subscriber.stop();
  }

  /** `ready` of the client comes before the subscription is acknowledged: only the loop-back makes the channel ready. */
  async #subscribe(): Promise<void> {
    for (const channel of this.#channels) await this.subscriber.client.ssubscribe(channel);
    this.#missed = 0;
    await this.#sendLoopback();
  }

  async #watch(): Promise<void> {
    if (!this.subscriber.up || !this.#publisher.up) {
      this.#missed = 0;
      return;
    }
    this.#missed += 1;
    if (this.#missed > REDIS_LIMITS.maxMissedLoopbacks) {
      this.#ready = false;
      this.#missed = 0;
      this.subscriber.reconnect();
      return;
    }
    await this.#sendLoopback();
  }

  async #sendLoopback(id = loopbackId()): Promise<void> {
    await this.#publisher.command("SPUBLISH", this.#channels[0] as string, `loopback ${id}`).catch(() => {});
  }

  #receive(message: string): void {
    for (const line of message.split("\n")) this.#receiveLine(line);
  }

  #receiveLine(line: string): void {
    const [kind, connection, epoch, agent] = line.split(" ", 4) as [string, string, string, string];
    if (kind === "loopback") {
      this.#missed = 0;
      this.#ready = true;
      this.#firstLoopback?.();
      this.#awaited.get(connection)?.();
    } else if (kind === "deliver") {
      const head = kind.length + connection.length + epoch.length + agent.length + 4;
      const textAt = line.indexOf(" ", head) + 1;
      const sessionId = line.slice(head, textAt - 1);
      this.#events?.deliver(connection, Number(epoch), agent, sessionId, line.slice(textAt));
    } else if (kind === "superseded") {
      this.#events?.superseded(connection, Number(epoch), agent);
    } else if (kind === "probe") {
      this.#events?.probe(connection, Number(epoch), agent);
    }
  }
}

function loopbackId(): string {
  return randomBytes(6).toString("hex");
}
