import type { Frame } from "./agent.ts";
import type { ReturningAgent } from "./returning-agent.ts";
import { until } from "./until.ts";

const TICK_MS = 20;

/** What became of one envelope. */
interface Entry {
  /** Undefined until it is acknowledged; then whether the relay said that it delivers in realtime. */
  promised: boolean | undefined;
  deliveries: number;
}

/** Messages between agents at a steady rate, and a ledger of every one. */
export class Exchange {
  readonly #agents: readonly ReturningAgent[];
  readonly #perSecond: number;
  readonly #ledger = new Map<string, Entry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(agents: readonly ReturningAgent[], perSecond: number) {
    this.#agents = agents;
    this.#perSecond = perSecond;
  }

  /** To be called with every frame that one of the agents receives. */
  note(frame: Frame): void {
    const entry = this.#ledger.get(frame.envelope_id ?? frame.envelope?.id);
    if (entry === undefined) return;
    if (frame.frame === "ack") entry.promised = frame.target_delivery.can_deliver_realtime;
    if (frame.frame === "deliver") entry.deliveries += 1;
  }

  start(): void {
    let sent = 0;
    const startedAt = performance.now();
    this.#timer = setInterval(() => {
      const due = ((performance.now() - startedAt) / 1000) * this.#perSecond;
      for (; sent < due; sent += 1) this.#sendOne();
    }, TICK_MS);
  }

  /** Sends no more; resolves when all that was promised is delivered, or does not come any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await until("what was promised is delivered", () => this.lost.length === 0).catch(() => {});
  }

  get sent(): number {
    return this.#ledger.size;
  }

  /** Ids of envelopes that were acknowledged as delivered in realtime. */
  get promised(): string[] {
    return this.#idsOf(({ promised }) => promised === true);
  }

  /** Promised, and not delivered. */
  get lost(): string[] {
    return this.#idsOf(({ promised, deliveries }) => promised === true && deliveries === 0);
  }

  get deliveredTwice(): string[] {
    return this.#idsOf(({ deliveries }) => deliveries > 1);
  }

  #idsOf(holds: (entry: Entry) => boolean): string[] {
    return [...this.#ledger].filter(([, entry]) => holds(entry)).map(([id]) => id);
  }

  /** Between two agents by chance; only an agent that is online sends, and whoever is meant may be away. */
  #sendOne(): void {
    const senders = this.#agents.filter(({ isOnline }) => isOnline);
    const sender = anyOf(senders);
    const target = anyOf(this.#agents.filter((agent) => agent !== sender));
    if (sender === undefined || target === undefined) return;
    const { id } = sender.send("message.send", { to: target.id, payload: { message: "exchanged" } });
    this.#ledger.set(id, { promised: undefined, deliveries: 0 });
  }
}

function anyOf<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)];
}
