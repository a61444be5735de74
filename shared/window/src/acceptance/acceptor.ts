import type { DeliveryStatus } from "relay-protocol/contract/presence.ts";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { Logger } from "relay-runtime/logging.ts";
import type { SpanAttributes, TraceSpan } from "relay-runtime/tracing/span.ts";
import { type AgentLimits, limitsOfPartition } from "../limits/principals.ts";
import { KnownEpochs } from "../presence/held-routes.ts";
import { partitionKeys } from "../redis/keys.ts";
import { isUndone } from "../redis/link-state.ts";
import { everyPartition, partitionOf } from "../redis/partitions.ts";
import { placeIn, type RedisCalls } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { Reply } from "../redis/scripts.ts";
import { WindowKeys } from "../redis/window-keys.ts";
import type { ProcessWindow, WindowIdentity } from "../window/process-window.ts";
import {
  type Acceptance,
  type AcceptanceItem,
  type AcceptanceObserver,
  guardDigestOf,
  type PlacedItem,
  type Prepared,
  sessionIdOf,
  UNDONE,
} from "./acceptance.ts";
import { addresseeOf, decodeReply, encodeBatch } from "./acceptance-call.ts";
import { decidedSessionOf, type Preparable, prepare } from "./preparation.ts";

/** Span attributes of an outcome. Not for registers and heartbeats. Source: docs/operations.md#traces. */
export function outcomeAttributes(acceptance: Acceptance): SpanAttributes {
  const { outcome } = acceptance;
  const delivery = deliveryOf(acceptance);
  if (delivery === undefined) return { "agent_relay.outcome": outcome, "error.type": outcome };
  return { "agent_relay.outcome": outcome, "agent_relay.delivery": delivery };
}

function deliveryOf(acceptance: Acceptance): DeliveryStatus | undefined {
  if (acceptance.outcome === "replayed") return acceptance.first.delivery;
  return "about" in acceptance && acceptance.about === "delivery" ? acceptance.delivery : undefined;
}

/**
 * The queue of one partition. One call at a time is under way. Calls begin at least `gatherMs` apart, and items that
 * arrive in between share the next call. A full batch goes at once. So does an item in a queue that was idle for
 * `gatherMs`.
 */
class PartitionQueue {
  readonly partition: number;
  /** True from the first waiting item until none waits. */
  isRunning = false;
  readonly #gatherMs: number;
  readonly #waiting: PlacedItem[] = [];
  /** When the last batch was taken, monotonic ms. */
  #calledAt = Number.NEGATIVE_INFINITY;
  /** Ends the wait for the next call. Undefined while nothing waits for it. */
  #endWait: (() => void) | undefined;

  constructor(partition: number, gatherMs: number) {
    this.partition = partition;
    this.#gatherMs = gatherMs;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  push(item: PlacedItem): void {
    this.#waiting.push(item);
    if (this.#isFull) this.#endWait?.();
  }

  /** Resolves when the next call may begin. @returns undefined if it may begin now. */
  untilDue(): Promise<void> | undefined {
    const waitMs = this.#calledAt + this.#gatherMs - performance.now();
    if (waitMs <= 0 || this.#isFull) return undefined;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /**
   * Takes the items of the next call. If two items have one claim, the second waits for the call after it. That call
   * replays the first answer.
   */
  takeBatch(): PlacedItem[] {
    this.#calledAt = performance.now();
    this.#endWait = undefined;
    const claims = new Set<string>();
    let characters = 0;
    let size = 0;
    for (const { text, claim } of this.#waiting) {
      if (size === REDIS_LIMITS.acceptanceBatch || characters > REDIS_LIMITS.acceptanceBatchCharacters) break;
      if (claim !== undefined && claims.has(claim.digest)) break;
      if (claim !== undefined) claims.add(claim.digest);
      characters += text.length;
      size += 1;
    }
    return this.#waiting.splice(0, size);
  }

  takeAll(): PlacedItem[] {
    return this.#waiting.splice(0);
  }

  get #isFull(): boolean {
    return this.#waiting.length >= REDIS_LIMITS.acceptanceBatch;
  }
}

/**
 * Accepts envelopes: one Redis call per partition carries all items that arrived since the last call. One call at a
 * time is under way for each partition. So the order of arrival is the order of delivery, even across a script flush.
 */
export class Acceptor {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #pod: string | undefined;
  readonly #offlineAfterMs: number;
  readonly #proofFreshnessMs: number;
  readonly #limits: AgentLimits;
  readonly #epochs: KnownEpochs;
  readonly #logger: Logger;
  readonly #queues: PartitionQueue[];
  #observer: AcceptanceObserver | undefined;

  constructor(
    options: Partial<AgentLimits> & {
      readonly link: RedisCalls;
      readonly window: ProcessWindow;
      /** Name of the pod. Undefined in a gateway, which accepts no registers or heartbeats. */
      readonly pod?: string;
      /** Epochs that the pod shares with its other writers. */
      readonly epochs?: KnownEpochs;
      /** Minimum ms between the starts of two calls of one partition. */
      readonly gatherMs?: number;
      readonly offlineAfterMs: number;
      readonly proofFreshnessMs: number;
      readonly logger: Logger;
    },
  ) {
    this.#link = options.link;
    this.#window = options.window;
    this.#pod = options.pod;
    this.#offlineAfterMs = options.offlineAfterMs;
    this.#proofFreshnessMs = options.proofFreshnessMs;
    this.#limits = limitsOfPartition(options, options.window.partitions);
    this.#epochs = options.epochs ?? new KnownEpochs(options.window.partitions);
    this.#logger = options.logger;
    const { gatherMs = 0 } = options;
    this.#queues = everyPartition(options.window.partitions).map(
      (partition) => new PartitionQueue(partition, gatherMs),
    );
    // Redis undoes nothing when a script fails. An older version's ACL may refuse a command that only some calls use.
    // Then the guard would hold an envelope that nobody received. So each new connection probes these commands.
    const nobody = partitionKeys.podChannel(0, "-");
    const { acceptFrom } = new WindowKeys(0, [0]).partition(0);
    const acceptFromCommand = options.pod === undefined ? "HGET" : "HDEL";
    options.link.onConnection(async (link) => {
      await link.probe("SPUBLISH", nobody, "");
      await link.probe(acceptFromCommand, acceptFrom, "-");
    });
  }

  observe(observer: AcceptanceObserver): void {
    this.#observer = observer;
  }

  /** Accepts one envelope. `item.done` gets the outcome within a second, whatever Redis does. */
  accept(item: AcceptanceItem): void {
    const placed = this.#place(item);
    const queue = this.#queues[placed.partition] as PartitionQueue;
    queue.push(placed);
    if (queue.isRunning) return;
    queue.isRunning = true;
    setImmediate(() => void this.#run(queue));
  }

  /** Whether an envelope must go through `prepare` before `accept`. */
  needsPreparation({ kind, claim }: Pick<AcceptanceItem, "kind" | "claim">): boolean {
    if (kind === "session_decision") return true;
    return this.#window.partitions > 1 && (kind === "session_request" || claim !== undefined);
  }

  /**
   * Writes or reads in other partitions before acceptance. A repeat has the same result.
   * @returns what the item needs, or the outcome of an envelope that does not reach acceptance.
   */
  async prepare(item: Preparable): Promise<Prepared | Acceptance> {
    try {
      return await prepare(item, {
        link: this.#link,
        window: this.#window,
        proofFreshnessMs: this.#proofFreshnessMs,
      });
    } catch (err) {
      this.#logFault(err, "the preparation of an acceptance failed");
      return { outcome: "unavailable", ...placeIn(err) };
    }
  }

  #place(item: AcceptanceItem): PlacedItem {
    const partition = partitionOf(addresseeOf(item), this.#window.partitions);
    const digest = guardDigestOf(item.envelope);
    return {
      ...item,
      partition,
      digest,
      sessionId: sessionOf(item, partition),
      acceptSpan: acceptSpanOf(item, partition),
    };
  }

  async #run(queue: PartitionQueue): Promise<void> {
    while (!queue.isEmpty) {
      const untilDue = queue.untilDue();
      if (untilDue !== undefined) await untilDue;
      const batch = queue.takeBatch().filter((item) => !this.#dropIfAbandoned(item));
      if (batch.length > 0) await this.#acceptBatch(queue, batch);
    }
    queue.isRunning = false;
  }

  #dropIfAbandoned(item: PlacedItem): boolean {
    if (item.abandoned?.() !== true) return false;
    this.#finish(item, { outcome: "abandoned" });
    return true;
  }

  async #acceptBatch(queue: PartitionQueue, batch: readonly PlacedItem[]): Promise<void> {
    let outcomes: readonly Acceptance[];
    const sentAt = performance.now();
    try {
      const reply = await this.#window.inWindow((window) => this.#call(queue.partition, window, batch));
      outcomes = decodeReply(batch, reply, sentAt);
    } catch (err) {
      this.#logFault(err, "an acceptance failed");
      // Items behind a call without an answer have waited long enough. They are refused, and clients can send them
      // again.
      const behind = queue.takeAll();
      const undone = { ...UNDONE, ...placeIn(err) };
      const unanswered = { outcome: "unavailable", ...placeIn(err) } as const;
      for (const item of batch) this.#finish(item, isUndone(err) ? undone : unanswered);
      for (const item of behind) this.#finish(item, undone);
      return;
    }
    this.#observeCall(batch.length);
    batch.forEach((item, index) => {
      const outcome = outcomes[index] as Acceptance;
      if ("epoch" in outcome && outcome.epoch !== null) this.#epochs.note(addresseeOf(item), outcome.epoch);
      this.#finish(item, outcome);
    });
  }

  async #call(
    partition: number,
    { id, keys: names }: WindowIdentity,
    batch: readonly PlacedItem[],
  ): Promise<Reply[] | null> {
    const context = {
      partition,
      windowId: id,
      keys: names.partition(partition),
      pod: this.#pod,
      offlineAfterMs: this.#offlineAfterMs,
      proofFreshnessMs: this.#proofFreshnessMs,
      limits: this.#limits,
      highestEpoch: this.#window.partitions === 1 ? undefined : this.#epochs.highestIn(partition),
      isShortOfMemory: this.#link.memoryOf(partitionKeys.window(partition)).isShort,
    };
    const { script, keys, args } = encodeBatch(batch, context);
    const reply = await this.#link.runByDeadline(script, keys, args);
    return reply[0] === "window" ? null : reply;
  }

  #observeCall(size: number): void {
    try {
      this.#observer?.called(size);
    } catch (err) {
      this.#logFault(err, "the observer of acceptance failed");
    }
  }

  /** A failing observer or callback stops neither the queue nor the other's call. */
  #finish(item: PlacedItem, acceptance: Acceptance): void {
    item.acceptSpan?.end(outcomeAttributes(acceptance));
    try {
      try {
        this.#observer?.settled(item, acceptance);
      } finally {
        item.done(acceptance);
      }
    } catch (err) {
      this.#logFault(err, "the callback of an acceptance failed");
    }
  }

  /** The link has already logged a ServiceError. */
  #logFault(err: unknown, text: string): void {
    if (!(err instanceof ServiceError)) this.#logger.error({ err }, text);
  }
}

function acceptSpanOf({ span, kind }: AcceptanceItem, partition: number): TraceSpan | undefined {
  if (span === undefined) return undefined;
  const attributes = { "agent_relay.kind": kind, "agent_relay.partition": partition };
  return span.child("accept", { kind: "client", attributes });
}

function sessionOf(item: AcceptanceItem, partition: number): string {
  if (item.kind === "session_request") return sessionIdOf(item.text, partition);
  return item.kind === "session_decision" ? decidedSessionOf(item.envelope) : "";
}
