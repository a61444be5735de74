import { keepNewest } from "../keep-newest.ts";
import type { Delivery } from "../types.ts";

const MAX_KEPT = 200;

/** The newest messages that the model has seen, so that it can reply to them. */
export class ReceivedMessages {
  /** In the order in which they were seen. */
  readonly #deliveries = new Map<string, Delivery>();

  readonly #replied = new WeakSet<Delivery>();

  /** One may be seen again, whose answer did not reach the client. */
  keep(delivery: Delivery): void {
    keepNewest(this.#deliveries, nameOf(delivery.from, delivery.envelope.id), delivery, MAX_KEPT);
  }

  /** @returns whether it was replied to before. */
  replied(delivery: Delivery): boolean {
    const isRepeat = this.#replied.has(delivery);
    this.#replied.add(delivery);
    return isRepeat;
  }

  /** Those with that id: of that agent, or of any. */
  find(envelopeId: string, from?: string): readonly Delivery[] {
    const all = [...this.#deliveries.values()].filter(({ envelope }) => envelope.id === envelopeId);
    return from === undefined ? all : all.filter((delivery) => delivery.from === from);
  }
}

/** An id is its sender's: another agent may use the same, to get the reply. */
function nameOf(from: string, envelopeId: string): string {
  return JSON.stringify([from, envelopeId]);
}
