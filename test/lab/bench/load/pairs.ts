import { setTimeout as delay, setImmediate as lookAround } from "node:timers/promises";
import { instant, type Pids, type Span, spanOf } from "../../accounting.ts";
import { percentile } from "../../report.ts";
import type { Dialect } from "./dialects.ts";
import { Stock, WebSocketClient } from "./websocket.ts";

const PROVE_AGAIN_MS = 50;
const LOST_AFTER_MS = 5000;
const HEARTBEAT_MS = 15_000;

interface Pair {
  readonly sender: WebSocketClient;
  readonly stock: Stock;
  inFlight: number;
}

/**
 * Senders on one pod, each with a target on another. In flight is what was sent and has not been delivered, for every
 * system alike; acknowledgements are read besides.
 */
export class Pairs {
  readonly #pairs: Pair[] = [];
  readonly #heartbeats: (() => void)[] = [];
  #delivered = 0;
  /** Called with how much came in for a target; set by whoever sends. */
  onDelivery: (pair: Pair, count: number) => void = () => {};

  /** Connects and registers them, one agent a connection, the targets at the last of the ports; resolves when messages get through. */
  async connect(dialect: Dialect, ports: readonly number[], targets: readonly string[]): Promise<void> {
    const [receiving, ...sending] = ports.toReversed() as [number, ...number[]];
    for (const [n, to] of targets.entries()) {
      const from = `agent://load.sender-${n}`;
      const sender = await this.#open(dialect, sending[n % sending.length] as number, from);
      this.#join(dialect, { sender, from }, { target: await this.#open(dialect, receiving, to), to });
    }
    this.#keepBeating();
    await this.#prove();
  }

  #join(
    dialect: Dialect,
    { sender, from }: { readonly sender: WebSocketClient; readonly from: string },
    { target, to }: { readonly target: WebSocketClient; readonly to: string },
  ): void {
    const { opcode, repeatable } = dialect;
    const stock = new Stock({ make: () => dialect.message(from, to), opcode, repeatable });
    const pair: Pair = { sender, stock, inFlight: 0 };
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

  /** One after the other, so that every measurement has its share of them. */
  #keepBeating(): void {
    if (this.#heartbeats.length === 0) return;
    let beats = 0;
    setInterval(() => {
      this.#heartbeats[beats % this.#heartbeats.length]?.();
      beats += 1;
    }, HEARTBEAT_MS / this.#heartbeats.length);
  }

  get all(): readonly Pair[] {
    return this.#pairs;
  }

  get delivered(): number {
    return this.#delivered;
  }

  /** Messages that had to be made while they were wanted. */
  get madeLate(): number {
    return this.#pairs.reduce((sum, { stock }) => sum + stock.late, 0);
  }

  /** Has so many messages ready, in all. */
  makeAhead(messages: number): void {
    for (const { stock } of this.#pairs) stock.fill(Math.ceil(messages / this.#pairs.length));
  }

  /** The next messages of one sender, in one write. */
  send(pair: Pair, count: number): void {
    pair.inFlight += count;
    pair.sender.write(pair.stock.take(count));
  }

  #take(pair: Pair, count: number): void {
    this.#delivered += count;
    pair.inFlight -= count;
    this.onDelivery(pair, count);
  }

  /** Resolves when all that was sent is delivered. @throws Error when something is not. */
  async settle(): Promise<void> {
    let last = { delivered: this.#delivered, at: performance.now() };
    while (this.#pairs.some(({ inFlight }) => inFlight > 0)) {
      if (this.#delivered > last.delivered) last = { delivered: this.#delivered, at: performance.now() };
      if (performance.now() > last.at + LOST_AFTER_MS) throw new Error("Messages were lost.");
      await delay(1);
    }
  }

  /** A server may know a target before its neighbour does: each pair tries until one message came through. */
  async #prove(): Promise<void> {
    const proven = new Set<Pair>();
    this.onDelivery = (pair) => proven.add(pair);
    while (proven.size < this.#pairs.length) {
      for (const pair of this.#pairs) if (!proven.has(pair)) this.send(pair, 1);
      await delay(PROVE_AGAIN_MS);
    }
    for (const pair of this.#pairs) pair.inFlight = 0;
  }
}

/** What a generator that is not to bound the result has ready: so many messages a second are made ahead. */
const STOCK_PER_SECOND = 50_000;

/** Messages in flight at once per sender, and for how long. */
export interface Press {
  readonly window: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly pids: Pids;
}

/** What got through in a span. */
export interface Carried extends Span {
  readonly delivered: number;
  /** Share of one core that the generator itself used. */
  readonly generatorShare: number;
  /** Messages that it had not made ahead. */
  readonly madeLate: number;
}

/** Keeps `window` messages in flight per sender, and counts what is delivered once all is warm. */
export async function press(pairs: Pairs, { window, warmUpMs, measureMs, pids }: Press): Promise<Carried> {
  pairs.makeAhead((STOCK_PER_SECOND * (warmUpMs + measureMs)) / 1000);
  pairs.onDelivery = (pair, count) => pairs.send(pair, count);
  for (const pair of pairs.all) pairs.send(pair, window);
  await delay(warmUpMs);
  const carried = await carriedWithin(pairs, pids, measureMs);
  pairs.onDelivery = () => {};
  await pairs.settle();
  return carried;
}

/** What gets through from now on. */
async function carriedWithin(pairs: Pairs, pids: Pids, forMs: number): Promise<Carried> {
  const before = { ...instant(pids), delivered: pairs.delivered, own: process.cpuUsage(), late: pairs.madeLate };
  await delay(forMs);
  const span = spanOf(before, instant(pids));
  const own = process.cpuUsage(before.own);
  return {
    ...span,
    delivered: pairs.delivered - before.delivered,
    generatorShare: (own.user + own.system) / 1e6 / span.seconds,
    madeLate: pairs.madeLate - before.late,
  };
}

/** Node's timers are no finer than 1 ms, and what leaves in steps of one keeps company that agents do not have. */
const NAP_MS = 0.1;
const BED = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** Messages at a fixed rate, the senders in turn, and for how long. */
export interface Pace {
  readonly perSecond: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly pids: Pids;
}

export interface Paced extends Carried {
  /** ms from when a message was due to its delivery. */
  readonly latency: Latency;
  /** ms by which the generator itself was late, at worst of a thousand. */
  readonly sentLate: number;
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

/**
 * Sends on schedule, one write a message, whether or not earlier ones have arrived: what a stall delays counts in full.
 * Only messages that are due once all is warm count.
 */
export async function pace(pairs: Pairs, { perSecond, warmUpMs, measureMs, pids }: Pace): Promise<Paced> {
  const total = (perSecond * (warmUpMs + measureMs)) / 1000;
  pairs.makeAhead(total);
  const latencies: number[] = [];
  const lateness: number[] = [];
  const startedAt = performance.now();
  const isMeasured = (due: number) => due >= startedAt + warmUpMs;
  const dues = new Map<Pair, number[]>(pairs.all.map((pair) => [pair, []]));
  pairs.onDelivery = (pair, count) => {
    const now = performance.now();
    for (const due of dues.get(pair)?.splice(0, count) ?? []) if (isMeasured(due)) latencies.push(now - due);
  };
  const send = (n: number) => {
    const pair = pairs.all[n % pairs.all.length] as Pair;
    const due = startedAt + dueAt(n, perSecond);
    if (isMeasured(due)) lateness.push(performance.now() - due);
    dues.get(pair)?.push(due);
    pairs.send(pair, 1);
  };
  const sending = sendOnSchedule(send, { perSecond, total, startedAt });
  await delay(warmUpMs);
  const carried = await carriedWithin(pairs, pids, measureMs);
  await sending;
  await pairs.settle();
  return { ...carried, latency: latencyOf(latencies), sentLate: percentile(lateness, 0.999) };
}

/** Sends each of `total` messages when it is due, or as soon after as this process comes to it. */
export async function sendOnSchedule(
  send: (n: number) => void,
  { perSecond, total, startedAt }: { readonly perSecond: number; readonly total: number; readonly startedAt: number },
): Promise<void> {
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, dueBy(performance.now() - startedAt, perSecond));
    for (; sent < due; sent += 1) send(sent);
    const untilNext = startedAt + dueAt(sent, perSecond) - performance.now();
    if (untilNext > 0) Atomics.wait(BED, 0, 0, Math.min(untilNext, NAP_MS));
    await lookAround();
  }
}

function latencyOf(latencies: readonly number[]): Latency {
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), p999: percentile(latencies, 0.999) };
}

/**
 * An open loop: what is due is due, whatever became of what went before. Times are ms from the start; the first message is
 * due at once, the others evenly after it.
 */

/** When a message is due, of which `n` are due before it. */
export function dueAt(n: number, perSecond: number): number {
  return (n * 1000) / perSecond;
}

/** How many messages are due by a time. */
function dueBy(elapsedMs: number, perSecond: number): number {
  return elapsedMs < 0 ? 0 : Math.floor((elapsedMs * perSecond) / 1000) + 1;
}
