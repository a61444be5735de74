import { BoundedQueue } from "./bounded-queue.ts";
import type { Emitter } from "./emitter.ts";
import type { ErrorCode, RelayError } from "./errors.ts";
import type { DeliverFrame } from "./frames.ts";
import { Receiver } from "./receiver.ts";
import type { ReplayGuard } from "./replay-guard.ts";
import type { SenderVerifier } from "./sender-verifier.ts";
import type { Delivery } from "./types.ts";

export interface InboxOptions {
  readonly agent: string;
  readonly verifier: SenderVerifier;
  readonly replayGuard: ReplayGuard;
  readonly requireVerified: boolean;
  readonly maxInbox: number;
  readonly emitter: Emitter;
}

/** Deliveries of the agent: checked, then handed to listeners, and kept for readers. */
export class Inbox {
  readonly #emitter: Emitter;
  readonly #queue: BoundedQueue<Delivery>;
  readonly #receiver: Receiver;
  #isRead = false;
  #hasEnded = false;
  #overflowed = 0;
  readonly #dropped = new Map<ErrorCode, number>();

  constructor({ maxInbox, emitter, ...checks }: InboxOptions) {
    this.#emitter = emitter;
    this.#queue = new BoundedQueue(maxInbox);
    this.#receiver = new Receiver({
      ...checks,
      maxWaiting: maxInbox,
      delivered: (delivery) => this.#deliver(delivery),
      dropped: (error) => this.#drop(error),
      overflowed: () => this.#overflow(),
    });
  }

  /** How many deliveries were dropped for what they are, by the code of the error. */
  get dropped(): ReadonlyMap<ErrorCode, number> {
    return this.#dropped;
  }

  receive(frame: DeliverFrame): void {
    this.#receiver.receive(frame);
  }

  async *read(): AsyncGenerator<Delivery, void, undefined> {
    this.#isRead = true;
    for (let delivery = await this.#queue.take(); delivery !== undefined; delivery = await this.#queue.take()) {
      yield delivery;
    }
  }

  end(error?: RelayError): void {
    this.#hasEnded = true;
    this.#queue.end(error);
  }

  /** With a `delivery` listener, deliveries are kept for readers only after the first read. */
  #deliver(delivery: Delivery): void {
    if (this.#hasEnded) return;
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
