import { randomBytes } from "node:crypto";
import { REDIS_LIMITS } from "../redis/limits.ts";
import { LinkDownError } from "../redis/link-state.ts";
import type { ServerLink, SubscribingLink } from "../redis/redis-calls.ts";

/**
 * The lines of a pod's channel. Scripts write those about an agent; the pod itself sends the loopback, and hears by it that
 * its subscription works. A traced line is of the delivery before it, and part of its text to the scripts. Source: shared/window/src/lua/lib/route.lua.
 */
export type ChannelLine =
  | (AboutAgent & { readonly kind: "deliver"; readonly sessionId: string | null; readonly text: string })
  | (AboutAgent & { readonly kind: (typeof PLAIN_KINDS)[number] })
  | { readonly kind: "traced"; readonly traceparent: string }
  | { readonly kind: "loopback"; readonly id: string };

/** Lines that name nothing but an agent and its connection. */
const PLAIN_KINDS = ["superseded", "probe", "disconnect"] as const;

interface AboutAgent {
  readonly connection: string;
  /** The connection's, but the newer owner's in `superseded`. */
  readonly epoch: number;
  readonly agent: string;
}

/** Stands for the session of an envelope that is of none. */
export const NO_SESSION = "-";

const DELIVER = "deliver ";

export function formatLoopback(id: string): string {
  return `loopback ${id}`;
}

/** The text of an envelope as scripts are given it: of a sampled trace with a line of its own behind it. */
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

/** Nearly every line is a delivery, and its text is long: its words are looked for, which takes half as long as a split. */
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

/** All that is about agents, and what follows it: a line of the pod to itself ends in its channel. */
export type AgentLine = Exclude<ChannelLine, { readonly kind: "loopback" }>;

/** One channel of the pod at the server that has its partition. */
interface Subscription {
  readonly partition: number;
  readonly channel: string;
  /** True while messages of the pod to itself come back. */
  isReady: boolean;
  /** Messages of the pod to itself that the server answered since anything came in. */
  missed: number;
  /** When the last of them was sent, monotonic ms; undefined before the first. */
  sentAt: number | undefined;
  /** The longest that the pod waited before it sent one, of those since the server answered one. */
  pauseMs: number;
}

/**
 * The pod's channels at one server, one of each partition that it has, on one connection. A subscription may be dead while its
 * socket looks alive: it is ready while messages that the pod sends to itself come back.
 *
 * The only reason to give the connection up are messages that the server says it has published while nothing comes in. While the
 * server is silent as a whole, or the commands do not reach it, the connection is kept: the server counts it as a subscriber and
 * reports deliveries as published, which a closed one would lose.
 */
export class ServerChannel {
  readonly link: SubscribingLink;
  readonly #server: ServerLink;
  readonly #send: (partition: number, message: string, pauseMs: number) => Promise<unknown>;
  readonly #receive: (line: AgentLine) => void;
  readonly #becameReady: (partition: number) => void;
  /** By partition. */
  readonly #subscriptions = new Map<number, Subscription>();
  /** Looks whose messages the server answered, since anything came in. */
  #silentLooks = 0;
  /** Where the rotation over the subscriptions goes on. */
  #next = 0;
  /** Callers of `caughtUp`, by the id of the message that each waits for. */
  readonly #awaited = new Map<string, () => void>();

  /**
   * @param options.send publishes a message of the pod to itself; `pauseMs` is how long the pod itself had sent none, at the longest,
   * since the server answered one.
   * @param options.becameReady runs each time the subscription of a partition is ready again.
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

  /** True while what is published of the partition comes in. */
  isReady(partition: number): boolean {
    return this.#subscriptions.get(partition)?.isReady ?? false;
  }

  get isUnused(): boolean {
    return this.#subscriptions.size === 0;
  }

  /** Hears what is published of the partition, from when its server takes the subscription. */
  join(partition: number, channel: string): void {
    const subscription = { partition, channel, isReady: false, missed: 0, sentAt: undefined, pauseMs: 0 };
    this.#subscriptions.set(partition, subscription);
    void this.#subscribe(subscription);
  }

  /** Resolves when what was published before has come in, or the server does not answer. No more is heard then. */
  async leave(partition: number): Promise<void> {
    const subscription = this.#subscriptions.get(partition);
    if (subscription === undefined) return;
    await this.link.unsubscribe(subscription.channel).catch(() => {});
    this.#subscriptions.delete(partition);
  }

  /**
   * Resolves when all that was published before has come in; at once when nothing does. All come in on one connection, in order.
   * @param partition is asked by preference: what is sent to another one, which is being moved, may not come back.
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

  /** To be called every 250 ms: sends the pod a message on one channel or more, so that each has one twice a second. */
  async look(): Promise<void> {
    if (this.isUnused) return;
    if (!this.link.up || !this.#server.up) {
      this.#silentLooks = 0;
      for (const subscription of this.#subscriptions.values()) subscription.missed = 0;
      // Nobody hears it, but the lease of the pod goes on.
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

  /** Where the server refuses, since it does not have the partition, a later look tries again. */
  async #subscribe(subscription: Subscription): Promise<void> {
    const { channel } = subscription;
    subscription.isReady = false;
    subscription.missed = 0;
    const receive = (message: string) => this.#receiveMessage(subscription, message);
    await this.link.subscribe(channel, receive).catch(() => {});
    if (this.link.up) await this.#sendLoopback(subscription);
  }

  /** An acknowledged subscription is not ready yet: the message that comes back makes it so. */
  async #subscribed(): Promise<void> {
    this.#silentLooks = 0;
    await Promise.all([...this.#subscriptions.values()].map((subscription) => this.#sendLoopback(subscription)));
  }

  /** @returns whether the server answered it. It may come back before its answer is read: then it counts for one that does not, until more comes in. */
  async #sendLoopback(subscription: Subscription, id = loopbackId()): Promise<boolean> {
    const now = performance.now();
    subscription.pauseMs = Math.max(subscription.pauseMs, now - (subscription.sentAt ?? now));
    subscription.sentAt = now;
    try {
      await this.#send(subscription.partition, formatLoopback(id), subscription.pauseMs);
      subscription.pauseMs = 0;
      return true;
    } catch {
      // The server's silence does not come of the pod's: what it waited goes on to count until there is an answer.
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
