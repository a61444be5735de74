import { BoundedQueue } from "./bounded-queue.ts";
import type { Emitter } from "./emitter.ts";
import type { RelayError } from "./errors.ts";
import type { DeliverFrame } from "./frames.ts";
import { Receiver } from "./receiver.ts";
import type { SenderVerifier } from "./sender-verifier.ts";
import type { Delivery } from "./types.ts";

export interface InboxOptions {
  readonly agent: string;
  readonly verifier: SenderVerifier;
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
  #dropped = 0;

  constructor({ agent, verifier, requireVerified, maxInbox, emitter }: InboxOptions) {
    this.#emitter = emitter;
    this.#queue = new BoundedQueue(maxInbox);
    this.#receiver = new Receiver({
      agent,
      verifier,
      requireVerified,
      maxWaiting: maxInbox,
      delivered: (delivery) => this.#deliver(delivery),
      dropped: (error) => emitter.emit("error", error),
      overflowed: () => this.#overflow(),
    });
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

  #overflow(): void {
    this.#dropped += 1;
    this.#emitter.emit("overflow", { dropped: this.#dropped });
  }
}
