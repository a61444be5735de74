import type { Envelope } from "../contract/envelope.ts";
import { RelayError } from "../contract/errors.ts";
import { REDIS_LIMITS } from "../contract/limits.ts";
import type { Logger } from "../logging.ts";
import type { Acceptance, AcceptanceItem, PlacedItem } from "./acceptance.ts";
import { addresseeOf, encodeBatch } from "./acceptance-call.ts";
import { decodeReply } from "./acceptance-reply.ts";
import { guardDigestOf, partitionOfSession, sessionIdOf } from "./envelope-digest.ts";
import { partitionOf } from "./partitions.ts";
import type { ProcessWindow } from "./process-window.ts";
import type { RedisLink, Reply } from "./redis-link.ts";
import { decideSession } from "./sessions.ts";

/** Watches what acceptance does; must be quick, for it is told of every envelope. */
export interface AcceptanceObserver {
  /** Redis answered a call that carried so many envelopes. */
  readonly called: (size: number) => void;
  readonly settled: (item: AcceptanceItem, acceptance: Acceptance) => void;
}

/**
 * Acceptance: one Redis call a partition carries all that came in since the last one. One call at a time is under way
 * for each partition, so that the order of arrival is the order of delivery, a script flush included.
 */
export class Acceptor {
  readonly #link: RedisLink;
  readonly #window: ProcessWindow;
  readonly #partitions: number;
  readonly #pod: string;
  readonly #offlineAfterMs: number;
  readonly #logger: Logger;
  readonly #lanes: Lane[];
  #observer: AcceptanceObserver | undefined;

  constructor(options: {
    readonly link: RedisLink;
    readonly window: ProcessWindow;
    readonly partitions: number;
    readonly pod: string;
    readonly offlineAfterMs: number;
    readonly logger: Logger;
  }) {
    this.#link = options.link;
    this.#window = options.window;
    this.#partitions = options.partitions;
    this.#pod = options.pod;
    this.#offlineAfterMs = options.offlineAfterMs;
    this.#logger = options.logger;
    this.#lanes = Array.from({ length: options.partitions }, (_, partition) => ({
      partition,
      waiting: [],
      running: false,
    }));
  }

  observe(observer: AcceptanceObserver): void {
    this.#observer = observer;
  }

  /** Accepts one envelope; `item.done` gets the outcome within a second, whatever Redis does. */
  accept(item: AcceptanceItem): void {
    const placed = this.#place(item);
    const lane = this.#lanes[placed.partition] as Lane;
    lane.waiting.push(placed);
    if (lane.running) return;
    lane.running = true;
    setImmediate(() => void this.#run(lane));
  }

  /**
   * The first step of a session decision, in the session's partition; null lets the envelope go on to `accept`.
   * The same envelope may be decided again: it gets the same answer.
   */
  async decide(decision: Envelope): Promise<Acceptance | null> {
    const sessionId = decision.payload.session_id as string;
    const partition = partitionOfSession(sessionId, this.#partitions);
    if (partition === undefined) return { outcome: "unknown_session" };
    try {
      const outcome = await this.#window.inWindow((window) =>
        decideSession(this.#link, window.id, partition, decision),
      );
      return outcome === "decided" ? null : { outcome };
    } catch {
      return { outcome: "unavailable" };
    }
  }

  #place(item: AcceptanceItem): PlacedItem {
    const partition = partitionOf(addresseeOf(item), this.#partitions);
    const digest = guardDigestOf(item.envelope);
    return { ...item, partition, digest, sessionId: sessionOf(item, partition) };
  }

  async #run(lane: Lane): Promise<void> {
    while (lane.waiting.length > 0) {
      const batch = nextBatch(lane.waiting).filter((item) => !this.#abandons(item));
      if (batch.length > 0) await this.#acceptBatch(lane, batch);
    }
    lane.running = false;
  }

  #abandons(item: PlacedItem): boolean {
    if (item.abandoned?.() !== true) return false;
    this.#finish(item, { outcome: "abandoned" });
    return true;
  }

  async #acceptBatch(lane: Lane, batch: readonly PlacedItem[]): Promise<void> {
    let outcomes: readonly Acceptance[];
    try {
      const reply = await this.#window.inWindow((window) => this.#call(lane.partition, window.id, batch));
      outcomes = decodeReply(batch, reply);
    } catch (err) {
      if (!(err instanceof RelayError)) this.#logger.error({ err }, "an acceptance failed");
      // What waits behind a call that had no answer would be late: it is refused at once, and can be sent again.
      for (const item of [...batch, ...lane.waiting.splice(0)]) this.#finish(item, { outcome: "unavailable" });
      return;
    }
    this.#observer?.called(batch.length);
    batch.forEach((item, index) => {
      this.#finish(item, outcomes[index] as Acceptance);
    });
  }

  async #call(partition: number, windowId: string, batch: readonly PlacedItem[]): Promise<Reply[] | null> {
    const context = { partition, windowId, pod: this.#pod, offlineAfterMs: this.#offlineAfterMs };
    const { keys, args } = encodeBatch(batch, context);
    const reply = (await this.#link.run("accept", keys, args)) as Reply[];
    return reply[0] === "window" ? null : reply;
  }

  #finish(item: PlacedItem, acceptance: Acceptance): void {
    this.#observer?.settled(item, acceptance);
    try {
      item.done(acceptance);
    } catch (err) {
      this.#logger.error({ err }, "the taker of an acceptance failed");
    }
  }
}

interface Lane {
  readonly partition: number;
  readonly waiting: PlacedItem[];
  running: boolean;
}

/** What the next call carries. The second item of a claim waits for the call after, which finds the first's answer. */
function nextBatch(waiting: PlacedItem[]): PlacedItem[] {
  const claims = new Set<string>();
  let bytes = 0;
  let size = 0;
  for (const { text, claim } of waiting) {
    if (size === REDIS_LIMITS.acceptanceBatch || bytes > REDIS_LIMITS.acceptanceBatchBytes) break;
    if (claim !== undefined && claims.has(claim.digest)) break;
    if (claim !== undefined) claims.add(claim.digest);
    bytes += text.length;
    size += 1;
  }
  return waiting.splice(0, size);
}

function sessionOf(item: AcceptanceItem, partition: number): string {
  if (item.kind === "session_request") return sessionIdOf(item.text, partition);
  return item.kind === "session_decision" ? (item.envelope.payload.session_id as string) : "";
}
