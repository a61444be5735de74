import type { Emitter } from "./emitter.ts";
import type { RelayError } from "./errors.ts";
import type { DeliverFrame } from "./frames.ts";
import { Inbox } from "./inbox.ts";
import { Receiver } from "./receiver.ts";
import type { Delivery } from "./types.ts";
import type { Verifier } from "./verifier.ts";

export interface MailboxOptions {
  readonly agent: string;
  readonly verifier: Verifier;
  readonly requireVerified: boolean;
  readonly maxInbox: number;
  readonly emitter: Emitter;
}

/** From deliveries to their readers and listeners. */
export class Mailbox {
  readonly #emitter: Emitter;
  readonly #inbox: Inbox<Delivery>;
  readonly #receiver: Receiver;
  #isRead = false;
  #hasEnded = false;
  #dropped = 0;

  constructor({ agent, verifier, requireVerified, maxInbox, emitter }: MailboxOptions) {
    this.#emitter = emitter;
    this.#inbox = new Inbox(maxInbox);
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
    for (let delivery = await this.#inbox.take(); delivery !== undefined; delivery = await this.#inbox.take()) {
      yield delivery;
    }
  }

  end(error?: RelayError): void {
    this.#hasEnded = true;
    this.#inbox.end(error);
  }

  /** What listeners got is kept for readers only once there is one. */
  #deliver(delivery: Delivery): void {
    if (this.#hasEnded) return;
    const isKept = this.#isRead || !this.#emitter.hears("delivery");
    if (isKept && !this.#inbox.push(delivery)) this.#overflow();
    this.#emitter.emit("delivery", delivery);
  }

  #overflow(): void {
    this.#dropped += 1;
    this.#emitter.emit("overflow", { dropped: this.#dropped });
  }
}
