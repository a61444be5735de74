import { setTimeout as delay, setImmediate as lookAround } from "node:timers/promises";
import type { Pids } from "../../accounting.ts";
import { percentile } from "../../report.ts";
import { type Carried, carriedWithin, type Pair, type Pairs } from "./pairs.ts";

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
