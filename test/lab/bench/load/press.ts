import { setTimeout as delay } from "node:timers/promises";
import { instant, type Pids, type Span, spanOf } from "../../accounting.ts";
import type { Pairs } from "./pairs.ts";

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
export async function carriedWithin(pairs: Pairs, pids: Pids, forMs: number): Promise<Carried> {
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
