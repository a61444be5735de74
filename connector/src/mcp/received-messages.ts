import type { Delivery } from "../types.ts";

const MAX_KEPT = 200;

/** The newest messages that the model has seen, so that it can reply to them. */
export class ReceivedMessages {
  /** In the order in which they were seen. */
  readonly #deliveries = new Map<string, Delivery>();

  keep(delivery: Delivery): void {
    this.#deliveries.set(nameOf(delivery.from, delivery.envelope.id), delivery);
    const [oldest] = this.#deliveries.keys();
    if (this.#deliveries.size > MAX_KEPT) this.#deliveries.delete(oldest as string);
  }

  /** Whether any agent's message with that id was seen. */
  hasId(envelopeId: string): boolean {
    return [...this.#deliveries.values()].some(({ envelope }) => envelope.id === envelopeId);
  }

  find(from: string, envelopeId: string): Delivery | undefined {
    return this.#deliveries.get(nameOf(from, envelopeId));
  }
}

/** An id is its sender's: another agent may use the same, to get the reply. */
function nameOf(from: string, envelopeId: string): string {
  return JSON.stringify([from, envelopeId]);
}
