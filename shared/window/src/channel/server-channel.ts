import { randomBytes } from "node:crypto";
import { LinkDownError } from "../redis/link-state.ts";
import type { ServerLink, SubscribingLink } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";

/**
 * Lines of a pod's channel. Scripts write the lines about agents. The pod itself sends `loopback`, and learns from it
 * that its subscription works. `traced` belongs to the delivery before it. For scripts it is part of the delivery's
 * text. Source: shared/window/src/lua/lib/route.lua.
 */
type ChannelLine =
  | (AboutAgent & { readonly kind: "deliver"; readonly sessionId: string | null; readonly text: string })
  | (AboutAgent & { readonly kind: (typeof PLAIN_KINDS)[number] })
  | { readonly kind: "traced"; readonly traceparent: string }
  | { readonly kind: "loopback"; readonly id: string };

/** Lines with only an agent and its connection. */
const PLAIN_KINDS = ["superseded", "probe", "disconnect"] as const;

interface AboutAgent {
  readonly connection: string;
  /** Epoch of the connection. In `superseded`, epoch of the newer owner. */
  readonly epoch: number;
  readonly agent: string;
}

/** In place of the session id for an envelope without a session. */
export const NO_SESSION = "-";

const DELIVER = "deliver ";

function formatLoopback(id: string): string {
  return `loopback ${id}`;
}

/** Text of an envelope for the scripts. A sampled trace adds a line behind it. */
export function textWithTrace(text: string, traceparent: string | undefined): string {
  return traceparent === undefined ? text : `${text}\ntraced ${traceparent}`;
}

/** @returns undefined for a kind that this version does not know. */
export function parseChannelLine(line: string): ChannelLine | undefined {
  if (line.startsWith(DELIVER)) return parseDelivery(line);
  const [word, first = "", epoch, agent = ""] = line.split(" ");
  if (word === "loopback") return { kind: word, id: first };
  if (word === "traced") return { kind: word, traceparent: first };
  const kind = PLAIN_KINDS.find((known) => known === word);
  return kind && { kind, connection: first, epoch: Number(epoch), agent };
}

/** Nearly every line is a delivery with a long text. Searching for its words takes half the time of a split. */
function parseDelivery(line: string): ChannelLine {
  const epochAt = line.indexOf(" ", DELIVER.length) + 1;
  const agentAt = line.indexOf(" ", epochAt) + 1;
  const sessionAt = line.indexOf(" ", agentAt) + 1;
  const sessionEnd = line.indexOf(" ", sessionAt);
  const sessionId = line.slice(sessionAt, sessionEnd);
  return {
    kind: "deliver",
    connection: line.slice(DELIVER.length, epochAt - 1),
    epoch: Number(line.slice(epochAt, agentAt - 1)),
    agent: line.slice(agentAt, sessionAt - 1),
    sessionId: sessionId === NO_SESSION ? null : sessionId,
    text: line.slice(sessionEnd + 1),
  };
}

/** All lines except the pod's message to itself, which ends in the channel. */
export type AgentLine = Exclude<ChannelLine, { readonly kind: "loopback" }>;

/** One channel of the pod at its partition's server. */
interface Subscription {
  readonly partition: number;
  readonly channel: string;
  /** True while the pod's messages to itself come back. */
  isReady: boolean;
  /** Number of the pod's messages that the server answered since the last message arrived. */
  missed: number;
  /** Monotonic ms: when the last of them was sent. Undefined before the first. */
  sentAt: number | undefined;
  /** Longest wait of the pod before such a message, since the server last answered one. */
  pauseMs: number;
}

/**
 * The pod's channels at one server, one per partition there, on one connection. A subscription may be dead while its
 * socket looks alive. It is ready while messages of the pod to itself come back.
 * The pod gives the connection up only if the server says that it published messages and nothing arrives. While the
 * server is silent, or does not get the commands, the pod keeps the connection. The server counts it as a subscriber
 * and reports deliveries as published. A closed connection would lose them.
 */
export class ServerChannel {
  readonly link: SubscribingLink;
  readonly #server: ServerLink;
  readonly #send: (partition: number, message: string, pauseMs: number) => Promise<unknown>;
  readonly #receive: (line: AgentLine) => void;
  readonly #becameReady: (partition: number) => void;
  /** By partition. */
  readonly #subscriptions = new Map<number, Subscription>();
  /** Looks whose messages the server answered, since the last message arrived. */
  #silentLooks = 0;
  /** Next place in the rotation over the subscriptions. */
  #next = 0;
  /** Callers of `caughtUp`, by the id of the message that they wait for. */
  readonly #awaited = new Map<string, () => void>();

  /**
   * @param options.send publishes a message of the pod to itself. Its `pauseMs` is the longest wait of the pod without
   * such a message since the server last answered one.
   * @param options.becameReady runs each time a partition's subscription becomes ready again.
   */
  constructor(options: {
    readonly server: ServerLink;
    readonly send: (partition: number, message: string, pauseMs: number) => Promise<unknown>;
    readonly receive: (line: AgentLine) => void;
    readonly becameReady: (partition: number) => void;
  }) {
    this.#server = options.server;
    this.#send = options.send;
    this.#receive = options.receive;
    this.#becameReady = options.becameReady;
    this.link = options.server.beside("channel");
    this.link.onConnection(() => this.#subscribed());
    this.link.onDown(() => {
      for (const subscription of this.#subscriptions.values()) subscription.isReady = false;
    });
  }

  /** True while publications of the partition arrive. */
  isReady(partition: number): boolean {
    return this.#subscriptions.get(partition)?.isReady ?? false;
  }

  get isUnused(): boolean {
    return this.#subscriptions.size === 0;
  }

  /** Subscribes to the partition. Publications arrive once the server has taken the subscription. */
  join(partition: number, channel: string): void {
    const subscription = { partition, channel, isReady: false, missed: 0, sentAt: undefined, pauseMs: 0 };
    this.#subscriptions.set(partition, subscription);
    void this.#subscribe(subscription);
  }

  /**
   * Resolves when all earlier publications have arrived, or if the server does not answer. Later publications are not
   * heard.
   */
  async leave(partition: number): Promise<void> {
    const subscription = this.#subscriptions.get(partition);
    if (subscription === undefined) return;
    await this.link.unsubscribe(subscription.channel).catch(() => {});
    this.#subscriptions.delete(partition);
  }

  /**
   * Resolves when all earlier publications have arrived, or at once if no subscription is ready. All arrive on one
   * connection, in order.
   * @param partition is preferred for the question: a message to another partition that is moving may not come back.
   */
  async caughtUp(partition?: number): Promise<void> {
    const subscription = this.#readySubscription(partition);
    if (subscription === undefined) return;
    const id = loopbackId();
    const back = new Promise<void>((resolve) => {
      this.#awaited.set(id, resolve);
      setTimeout(resolve, REDIS_LIMITS.catchUpMs).unref();
    });
    await this.#sendLoopback(subscription, id);
    await back;
    this.#awaited.delete(id);
  }

  /** Sends the pod a message on enough channels that each gets one twice a second. The caller runs it every 250 ms. */
  async look(): Promise<void> {
    if (this.isUnused) return;
    if (!this.link.up || !this.#server.up) {
      this.#silentLooks = 0;
      for (const subscription of this.#subscriptions.values()) subscription.missed = 0;
      // Nobody receives these messages, but they renew the pod's lease.
      await Promise.all(this.#due().map((subscription) => this.#sendLoopback(subscription)));
      return;
    }
    if (this.#silentLooks >= REDIS_LIMITS.maxMissedLoopbacks) {
      this.#silentLooks = 0;
      this.link.reconnect(new LinkDownError("timeout", "messages of the pod to itself do not come back"));
      return;
    }
    const answers = await Promise.all(this.#due().map((subscription) => this.#lookAt(subscription)));
    if (answers.some((isAnswered) => isAnswered)) this.#silentLooks += 1;
  }

  async stop(): Promise<void> {
    for (const settle of this.#awaited.values()) settle();
    await this.link.stop();
  }

  #readySubscription(preferred: number | undefined): Subscription | undefined {
    const ready = [...this.#subscriptions.values()].filter(({ isReady }) => isReady);
    return ready.find(({ partition }) => partition === preferred) ?? ready[0];
  }

  #due(): Subscription[] {
    const all = [...this.#subscriptions.values()];
    const due = Math.ceil((all.length * REDIS_LIMITS.loopbackIntervalMs) / REDIS_LIMITS.partitionLoopbackMs);
    const from = this.#next;
    this.#next = (from + due) % all.length;
    return Array.from({ length: due }, (_, n) => all[(from + n) % all.length] as Subscription);
  }

  async #lookAt(subscription: Subscription): Promise<boolean> {
    if (subscription.missed >= REDIS_LIMITS.maxMissedLoopbacks) await this.#subscribe(subscription);
    const isAnswered = await this.#sendLoopback(subscription);
    if (isAnswered) subscription.missed += 1;
    return isAnswered;
  }

  /** If the server refuses because it does not have the partition, a later look tries again. */
  async #subscribe(subscription: Subscription): Promise<void> {
    const { channel } = subscription;
    subscription.isReady = false;
    subscription.missed = 0;
    const receive = (message: string) => this.#receiveMessage(subscription, message);
    await this.link.subscribe(channel, receive).catch(() => {});
    if (this.link.up) await this.#sendLoopback(subscription);
  }

  /** An acknowledged subscription is ready only when a message comes back. */
  async #subscribed(): Promise<void> {
    this.#silentLooks = 0;
    await Promise.all([...this.#subscriptions.values()].map((subscription) => this.#sendLoopback(subscription)));
  }

  /**
   * @returns whether the server answered. If the message comes back before its answer is read, it counts as missing
   * until more arrives.
   */
  async #sendLoopback(subscription: Subscription, id = loopbackId()): Promise<boolean> {
    const now = performance.now();
    subscription.pauseMs = Math.max(subscription.pauseMs, now - (subscription.sentAt ?? now));
    subscription.sentAt = now;
    try {
      await this.#send(subscription.partition, formatLoopback(id), subscription.pauseMs);
      subscription.pauseMs = 0;
      return true;
    } catch {
      // The server's silence is not the pod's delay. `pauseMs` keeps growing until there is an answer.
      return false;
    }
  }

  #receiveMessage(subscription: Subscription, message: string): void {
    this.#silentLooks = 0;
    subscription.missed = 0;
    for (const text of message.split("\n")) {
      const line = parseChannelLine(text);
      if (line?.kind === "loopback") this.#looped(subscription, line.id);
      else if (line !== undefined) this.#receive(line);
    }
  }

  #looped(subscription: Subscription, id: string): void {
    this.#awaited.get(id)?.();
    if (subscription.isReady) return;
    subscription.isReady = true;
    this.#becameReady(subscription.partition);
  }
}

function loopbackId(): string {
  return randomBytes(6).toString("hex");
}
