import { randomBytes } from "node:crypto";
import type { Service } from "runtime/lifecycle.ts";
import type { Logger } from "runtime/logging.ts";
import { formatLoopback, parseChannelLine } from "./records/channel-line.ts";
import { partitionKeys } from "./redis/keys.ts";
import { REDIS_LIMITS } from "./redis/limits.ts";
import { LinkDownError } from "./redis/link-down.ts";
import { RedisLink } from "./redis/redis-link.ts";

/** What comes in over the pod's channel, one line each. Source: shared/window/src/records/channel-line.ts. */
export interface PodChannelEvents {
  /** `sessionId` is null for an envelope of no session. */
  readonly deliver: (connection: string, epoch: number, agent: string, sessionId: string | null, text: string) => void;
  readonly superseded: (connection: string, epoch: number, agent: string) => void;
  readonly probe: (connection: string, epoch: number, agent: string) => void;
}

/**
 * The channel on which the pod receives its deliveries. It is ready while messages that the pod sends to itself come
 * back, since a subscription may be dead while its socket looks alive.
 *
 * Missing messages are the only reason to give it up. While all of Redis is silent it is kept: when Redis goes on, it
 * still counts this connection as a subscriber and reports deliveries as published, which a closed connection would lose.
 */
export class PodChannel implements Service {
  /** The link that the channel is subscribed on. */
  readonly subscriber: RedisLink;
  readonly #publisher: RedisLink;
  /** One of each partition; the first also carries the pod's messages to itself. */
  readonly #channels: string[];
  #events: PodChannelEvents | undefined;
  #ready = false;
  #missed = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Callers of `caughtUp`, by the id of the message that each waits for. */
  readonly #awaited = new Map<string, () => void>();
  readonly #readyListeners: (() => void)[] = [];
  #firstLoopback: (() => void) | undefined;
  #stopped = false;

  constructor(options: { url: string; publisher: RedisLink; pod: string; partitions: number; logger: Logger }) {
    const { url, publisher, pod, partitions, logger } = options;
    this.#publisher = publisher;
    this.#channels = Array.from({ length: partitions }, (_, p) => partitionKeys.podChannel(p, pod));
    this.subscriber = new RedisLink({ url, name: "ws-connector-channel", watched: false, logger });
    for (const channel of this.#channels) this.subscriber.subscribe(channel, (message) => this.#receive(message));
    this.subscriber.onReady(() => this.#subscribed());
    this.subscriber.onDown(() => {
      this.#ready = false;
    });
  }

  get ready(): boolean {
    return this.#ready;
  }

  listen(events: PodChannelEvents): void {
    this.#events = events;
  }

  /** Runs each time the channel has become ready: what was published before may not have come in. */
  onReady(listener: () => void): void {
    this.#readyListeners.push(listener);
  }

  /** Resolves when a message came back or the channel was stopped, or after a connect timeout. */
  async start(): Promise<void> {
    const looped = new Promise<void>((resolve) => {
      this.#firstLoopback = resolve;
      setTimeout(resolve, REDIS_LIMITS.connectTimeoutMs).unref();
    });
    await this.subscriber.start();
    if (this.#stopped) return;
    this.#timer = setInterval(() => void this.#watch(), REDIS_LIMITS.loopbackIntervalMs);
    await looped;
  }

  /** Resolves when all that was published to this pod before has come in; at once when the channel is not ready. */
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
    this.#stopped = true;
    clearInterval(this.#timer);
    this.#firstLoopback?.();
    this.#ready = false;
    await this.subscriber.stop();
  }

  /** An acknowledged subscription does not make the channel ready yet: the message that comes back does. */
  async #subscribed(): Promise<void> {
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
      this.#missed = 0;
      this.subscriber.reconnect(new LinkDownError("timeout", "messages of the pod to itself do not come back"));
      return;
    }
    await this.#sendLoopback();
  }

  async #sendLoopback(id = loopbackId()): Promise<void> {
    await this.#publisher.command("SPUBLISH", this.#channels[0] as string, formatLoopback(id)).catch(() => {});
  }

  #receive(message: string): void {
    for (const line of message.split("\n")) this.#receiveLine(line);
  }

  #receiveLine(text: string): void {
    const line = parseChannelLine(text);
    if (line?.kind === "deliver") {
      this.#events?.deliver(line.connection, line.epoch, line.agent, line.sessionId, line.text);
    } else if (line?.kind === "loopback") {
      this.#looped(line.id);
    } else if (line !== undefined) {
      this.#events?.[line.kind](line.connection, line.epoch, line.agent);
    }
  }

  /** A message of the pod to itself came back. */
  #looped(id: string): void {
    this.#missed = 0;
    this.#firstLoopback?.();
    this.#awaited.get(id)?.();
    if (this.#ready) return;
    this.#ready = true;
    for (const listener of this.#readyListeners) listener();
  }
}

function loopbackId(): string {
  return randomBytes(6).toString("hex");
}
