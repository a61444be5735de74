import type { Frame } from "./agent.ts";
import type { ReturningAgent } from "./returning-agent.ts";
import { until } from "./until.ts";

const TICK_MS = 20;
/** A client with so many envelopes unanswered sends no more for now, lest repeats become a load of their own. */
const MOST_UNSETTLED = 30;
/** Of what was sent so many are kept, to be sent again. */
const KEPT = 2000;

/** Messages between agents at a steady rate; what becomes of them stands in the agents' ledger. */
export class Exchange {
  readonly #agents: readonly ReturningAgent[];
  readonly #perSecond: number;
  /** What was sent last, the oldest first. */
  readonly #sent: { readonly sender: ReturningAgent; readonly envelope: Frame }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(agents: readonly ReturningAgent[], perSecond: number) {
    this.#agents = agents;
    this.#perSecond = perSecond;
  }

  start(): void {
    let sent = 0;
    const startedAt = performance.now();
    this.#timer = setInterval(() => {
      const due = ((performance.now() - startedAt) / 1000) * this.#perSecond;
      for (; sent < due; sent += 1) this.#sendOne();
    }, TICK_MS);
  }

  /** Every second agent sends again what it sent lately of these envelopes. Returns the ids of those. */
  repeat(ids: ReadonlySet<string>): string[] {
    const repeating = this.#agents.filter((agent, n) => n % 2 === 0 && agent.isOnline);
    const repeated = this.#sent.filter(({ sender, envelope }) => ids.has(envelope.id) && repeating.includes(sender));
    for (const { sender, envelope } of repeated) sender.repeat(envelope);
    return repeated.map(({ envelope }) => envelope.id);
  }

  /** Sends no more; resolves when agents that are online have a final answer to each of their envelopes. */
  async stop(withinMs?: number): Promise<void> {
    clearInterval(this.#timer);
    const isSettled = ({ isOnline, unsettled }: ReturningAgent) => !isOnline || unsettled === 0;
    await until("every envelope is answered", () => this.#agents.every(isSettled), withinMs);
  }

  /** Between two agents by chance; only an agent that is online sends, and whoever is meant may be away. */
  #sendOne(): void {
    const senders = this.#agents.filter(({ isOnline, unsettled }) => isOnline && unsettled < MOST_UNSETTLED);
    const sender = anyOf(senders);
    const target = anyOf(this.#agents.filter((agent) => agent !== sender));
    if (sender === undefined || target === undefined) return;
    const envelope = sender.send("message.send", { to: target.id, payload: { message: "exchanged" } });
    this.#sent.push({ sender, envelope });
    if (this.#sent.length > KEPT) this.#sent.shift();
  }
}

function anyOf<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)];
}
