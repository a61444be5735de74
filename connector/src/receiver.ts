import { Chains } from "./chains.ts";
import type { DeliveryJudge, IncomingEnvelope, ReceivedDelivery } from "./delivery-judge.ts";
import { RelayError } from "./errors.ts";
import type { DeliverFrame } from "./frames.ts";
import { readEnvelope } from "./read-envelope.ts";

export interface ReceiverOptions {
  readonly judge: DeliveryJudge;
  /** Deliveries whose check may be outstanding; one more overflows. */
  readonly maxWaiting: number;
  readonly delivered: (delivery: ReceivedDelivery) => void;
  readonly dropped: (error: RelayError) => void;
  readonly overflowed: () => void;
}

/** Checks deliveries, those of one sender one after the other, so that their order holds; no sender waits for another's. */
export class Receiver {
  readonly #options: ReceiverOptions;
  /** By sender. */
  readonly #chains = new Chains();
  #waiting = 0;
  readonly #afterChecks: (() => void)[] = [];

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  receive(frame: DeliverFrame): void {
    const { maxWaiting, dropped, overflowed } = this.#options;
    const envelope = readEnvelope(frame.envelope);
    if (envelope === undefined) {
      dropped(new RelayError("malformed_delivery"));
      return;
    }
    if (this.#waiting >= maxWaiting) {
      overflowed();
      return;
    }
    const incoming = { envelope, sessionId: frame.sessionId, receivedAt: Date.now() };
    this.#waiting += 1;
    this.#chains.add(envelope.from, () => this.#check(incoming));
  }

  async #check(incoming: IncomingEnvelope): Promise<void> {
    const { judge, delivered, dropped } = this.#options;
    const judged = await judge.judge(incoming);
    if (judged instanceof RelayError) dropped(judged);
    else if (judged !== undefined) delivered(judged);
    this.#waiting -= 1;
    if (this.#waiting === 0) for (const then of this.#afterChecks.splice(0)) then();
  }

  /** Calls it behind all that came in: at once where nothing is being checked. */
  afterChecks(then: () => void): void {
    if (this.#waiting === 0) then();
    else this.#afterChecks.push(then);
  }
}
