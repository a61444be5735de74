import { setTimeout as delay } from "node:timers/promises";
import { instant, type Pids, type Span, spanOf } from "../accounting.ts";
import type { Dialect } from "./dialect.ts";
import { Stock } from "./stock.ts";
import { WebSocketClient } from "./websocket.ts";

/** What a generator that is not to bound the result has ready: so many messages a second are made ahead. */
const STOCK_PER_SECOND = 50_000;
const PROVE_AGAIN_MS = 50;
const LOST_AFTER_MS = 5000;
const PACE_TICK_MS = 1;
const HEARTBEAT_MS = 15_000;

interface Pair {
  readonly sender: WebSocketClient;
  readonly stock: Stock;
  inFlight: number;
  /** When what is in flight was sent, monotonic ms; in order, since deliveries are. */
  readonly sentAt: number[];
}

/** Messages in flight at once per sender, and for how long. */
export interface Press {
  readonly window: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly pids: Pids;
}

export interface Pressed extends Span {
  readonly delivered: number;
  /** Share of one core that the generator itself used. */
  readonly generatorShare: number;
  /** Messages that it had not made ahead. */
  readonly madeLate: number;
}

/**
 * Senders on one pod, each with a target on another. In flight is what was sent and has not been delivered, for every
 * system alike; acknowledgements are read besides.
 */
export class Pairs {
  readonly #pairs: Pair[] = [];
  readonly #heartbeats: (() => void)[] = [];
  #delivered = 0;
  #onDelivery: (pair: Pair, count: number) => void = () => {};

  /** Connects and registers them, one agent a connection; resolves when messages get through. */
  async connect(dialect: Dialect, ports: readonly [number, number], count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) await this.#join(dialect, ports, n);
    setInterval(() => {
      for (const beat of this.#heartbeats) beat();
    }, HEARTBEAT_MS);
    await this.#prove();
  }

  async #join(dialect: Dialect, [sending, receiving]: readonly [number, number], n: number): Promise<void> {
    const [from, to] = [`agent://load.sender-${n}`, `agent://load.target-${n}`];
    const [sender, target] = [await this.#open(dialect, sending, from), await this.#open(dialect, receiving, to)];
    const { opcode, repeatable } = dialect;
    const stock = new Stock({ make: () => dialect.message(from, to), opcode, repeatable });
    const pair: Pair = { sender, stock, inFlight: 0, sentAt: [] };
    this.#pairs.push(pair);
    const readAnswer = dialect.reader((text) => sender.send(text, opcode));
    sender.onPayloads((payloads) => payloads.forEach(readAnswer));
    const readDelivery = dialect.reader((text) => target.send(text, opcode));
    target.onPayloads((payloads) => {
      const deliveries = payloads.reduce((sum, payload) => sum + readDelivery(payload), 0);
      if (deliveries > 0) this.#take(pair, deliveries);
    });
  }

  async #open(dialect: Dialect, port: number, agent: string): Promise<WebSocketClient> {
    const client = await WebSocketClient.open(port, dialect.path);
    await dialect.register(client, [agent]);
    const { heartbeat, opcode } = dialect;
    if (heartbeat !== undefined) this.#heartbeats.push(() => client.send(heartbeat(agent), opcode));
    return client;
  }

  /** Keeps `window` messages in flight per sender, and counts what is delivered once all is warm. */
  async press({ window, warmUpMs, measureMs, pids }: Press): Promise<Pressed> {
    this.#makeAhead((STOCK_PER_SECOND * (warmUpMs + measureMs)) / 1000);
    this.#onDelivery = (pair, count) => this.#send(pair, count);
    for (const pair of this.#pairs) this.#send(pair, window);
    await delay(warmUpMs);
    const before = { ...instant(pids), delivered: this.#delivered, own: process.cpuUsage(), late: this.#late };
    await delay(measureMs);
    const after = instant(pids);
    const span = spanOf(before, after);
    const own = process.cpuUsage(before.own);
    const pressed = {
      ...span,
      delivered: this.#delivered - before.delivered,
      generatorShare: (own.user + own.system) / 1e6 / span.seconds,
      madeLate: this.#late - before.late,
    };
    await this.#settle();
    return pressed;
  }

  /** Sends at a fixed rate, the senders in turn. Returns the ms from each write to its delivery. */
  async pace({ perSecond, forMs }: { readonly perSecond: number; readonly forMs: number }): Promise<number[]> {
    const latencies: number[] = [];
    this.#makeAhead((perSecond * forMs) / 1000);
    this.#onDelivery = (pair, count) => {
      const now = performance.now();
      for (const sentAt of pair.sentAt.splice(0, count)) latencies.push(now - sentAt);
    };
    const startedAt = performance.now();
    let sent = 0;
    while (performance.now() - startedAt < forMs) {
      for (const due = ((performance.now() - startedAt) / 1000) * perSecond; sent < due; sent += 1) {
        const pair = this.#pairs[sent % this.#pairs.length] as Pair;
        pair.sentAt.push(performance.now());
        this.#send(pair, 1);
      }
      await delay(PACE_TICK_MS);
    }
    await this.#settle();
    return latencies;
  }

  get #late(): number {
    return this.#pairs.reduce((sum, { stock }) => sum + stock.late, 0);
  }

  #makeAhead(messages: number): void {
    for (const { stock } of this.#pairs) stock.fill(Math.ceil(messages / this.#pairs.length));
  }

  #send(pair: Pair, count: number): void {
    pair.inFlight += count;
    pair.sender.write(pair.stock.take(count));
  }

  #take(pair: Pair, count: number): void {
    this.#delivered += count;
    pair.inFlight -= count;
    this.#onDelivery(pair, count);
  }

  /** Sends no more; resolves when all is delivered. @throws Error when something is not. */
  async #settle(): Promise<void> {
    this.#onDelivery = () => {};
    const deadline = performance.now() + LOST_AFTER_MS;
    while (this.#pairs.some(({ inFlight }) => inFlight > 0)) {
      if (performance.now() > deadline) throw new Error("Messages were lost.");
      await delay(1);
    }
  }

  /** A server may know a target before its neighbour does: each pair tries until one message came through. */
  async #prove(): Promise<void> {
    const proven = new Set<Pair>();
    this.#onDelivery = (pair) => proven.add(pair);
    while (proven.size < this.#pairs.length) {
      for (const pair of this.#pairs) if (!proven.has(pair)) this.#send(pair, 1);
      await delay(PROVE_AGAIN_MS);
    }
    for (const pair of this.#pairs) pair.inFlight = 0;
  }
}
