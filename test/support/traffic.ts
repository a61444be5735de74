import type { AgentSocket, Frame } from "./agent.ts";
import { until } from "./until.ts";

/** A sender that keeps some envelopes in flight for as long as a test asks, and what it was told of each. */
export class Traffic {
  readonly sent = new Map<string, Frame>();
  readonly answers = new Map<string, Frame>();
  readonly #sender: AgentSocket;
  readonly #make: (n: number) => Frame;
  #runs = true;

  /** @param make the n-th envelope. */
  constructor(sender: AgentSocket, inFlight: number, make: (n: number) => Frame) {
    this.#sender = sender;
    this.#make = make;
    sender.socket.on("message", (data: Buffer) => this.#receive(JSON.parse(data.toString())));
    for (let n = 0; n < inFlight; n += 1) this.#sendNext();
  }

  /** Sends no more; resolves when every envelope has its answer. */
  async stop(): Promise<void> {
    this.#runs = false;
    await until("every envelope is answered", () => this.answers.size === this.sent.size);
  }

  /** Ids of the envelopes that were acknowledged as delivered in realtime. */
  get promised(): string[] {
    return [...this.answers.values()]
      .filter(({ target_delivery }) => target_delivery?.can_deliver_realtime === true)
      .map(({ envelope_id }) => envelope_id);
  }

  #receive(frame: Frame): void {
    if (!this.sent.has(frame.envelope_id)) return;
    this.answers.set(frame.envelope_id, frame);
    if (this.#runs) this.#sendNext();
  }

  #sendNext(): void {
    const envelope = this.#make(this.sent.size);
    this.sent.set(envelope.id, envelope);
    this.#sender.send(envelope);
  }
}

/** Ids of all envelopes delivered to these sockets, each as often as it came. */
export function deliveredTo(sockets: readonly AgentSocket[]): string[] {
  return sockets.flatMap(({ deliveries }) => deliveries.map(({ envelope }) => envelope.id));
}
