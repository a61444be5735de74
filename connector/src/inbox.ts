import { BoundedQueue } from "./bounded-queue.ts";
import type { Clock } from "./clock.ts";
import type { Conversations } from "./conversations.ts";
import { DeliveryJudge, type ReceivedDelivery } from "./delivery-judge.ts";
import type { Emitter } from "./emitter.ts";
import type { ErrorCode, RelayError } from "./errors.ts";
import type { DeliverFrame } from "./frames.ts";
import { MAX_DELIVERY_AGE_MS, MAX_INBOX } from "./limits.ts";
import type { ConnectorOptions } from "./options.ts";
import type { Peers } from "./peers.ts";
import type { SessionRecords } from "./receipts/session-records.ts";
import { Receiver } from "./receiver.ts";
import { ReplayGuard } from "./replay-guard.ts";
import type { OpeningKeys } from "./sealing/sealed-payload.ts";
import type { Delivery } from "./types.ts";

export interface InboxOptions {
  readonly options: ConnectorOptions;
  readonly peers: Peers;
  readonly sealingKeys: OpeningKeys;
  readonly sessions: SessionRecords;
  readonly conversations: Conversations;
  readonly clock: Clock;
  readonly emitter: Emitter;
}

/** Deliveries of the agent: checked, then handed to listeners, and kept for readers. */
export class Inbox {
  readonly #emitter: Emitter;
  readonly #conversations: Conversations;
  readonly #replayGuard: ReplayGuard;
  readonly #queue: BoundedQueue<Delivery>;
  readonly #receiver: Receiver;
  #isRead = false;
  #overflowed = 0;
  readonly #dropped = new Map<ErrorCode, number>();

  constructor({ options, peers: { verifier }, sealingKeys, sessions, conversations, clock, emitter }: InboxOptions) {
    const { agent, requireVerified = false } = options;
    const { maxInbox = MAX_INBOX, maxDeliveryAgeMs = MAX_DELIVERY_AGE_MS } = options;
    this.#emitter = emitter;
    this.#conversations = conversations;
    this.#replayGuard = new ReplayGuard(clock, maxDeliveryAgeMs, (sender) => verifier.isPinned(sender));
    const replayGuard = this.#replayGuard;
    const judge = new DeliveryJudge({ agent, verifier, replayGuard, requireVerified, sealingKeys, sessions });
    this.#queue = new BoundedQueue(maxInbox, ({ from }) => from);
    this.#receiver = new Receiver({
      judge,
      maxWaiting: maxInbox,
      delivered: (received) => this.#deliver(received),
      dropped: (error) => this.#drop(error),
      overflowed: () => this.#overflow(),
    });
  }

  /** How many deliveries were dropped for what they are, by the code of the error. */
  get dropped(): ReadonlyMap<ErrorCode, number> {
    return this.#dropped;
  }

  /** False when nobody can tell here what is old. */
  get canJudge(): boolean {
    return this.#replayGuard.canJudge;
  }

  receive(frame: DeliverFrame): void {
    this.#receiver.receive(frame);
  }

  /** Calls it when all that came in is handed over, or dropped for what it is. */
  afterDeliveries(then: () => void): void {
    this.#receiver.afterChecks(then);
  }

  async *read(): AsyncGenerator<Delivery, void, undefined> {
    this.#isRead = true;
    for (let delivery = await this.#queue.take(); delivery !== undefined; delivery = await this.#queue.take()) {
      yield delivery;
    }
  }

  /** Nothing comes in any more. */
  end(error?: RelayError): void {
    this.#queue.end(error);
  }

  /** With a `delivery` listener, deliveries are kept for readers only after the first read. */
  #deliver(received: ReceivedDelivery): void {
    const delivery = this.#conversations.receive(received);
    if (delivery === undefined) return;
    const isKept = this.#isRead || !this.#emitter.hasListeners("delivery");
    if (isKept && !this.#queue.push(delivery)) this.#overflow();
    this.#emitter.emit("delivery", delivery);
  }

  #drop(error: RelayError): void {
    this.#dropped.set(error.code, (this.#dropped.get(error.code) ?? 0) + 1);
    this.#emitter.emit("error", error);
  }

  #overflow(): void {
    this.#overflowed += 1;
    this.#emitter.emit("overflow", { dropped: this.#overflowed });
  }
}
