import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { pace } from "./pace.ts";
import type { Pair, Pairs } from "./pairs.ts";

const PER_SECOND = 1000;
const MEASURE_MS = 300;
const STALL_MS = 150;

/** Pairs whose server stands still: what is sent arrives when the sender has nothing more to send. */
class StalledPairs {
  readonly all = [{}, {}, {}] as Pair[];
  readonly sent: { readonly pair: Pair; readonly count: number }[] = [];
  readonly madeLate = 0;
  delivered = 0;
  onDelivery: Pairs["onDelivery"] = () => {};

  makeAhead(): void {}

  send(pair: Pair, count: number): void {
    this.sent.push({ pair, count });
  }

  /** At one instant. */
  async settle(): Promise<void> {
    jest.spyOn(performance, "now").mockReturnValue(performance.now());
    for (const { pair, count } of this.sent) this.onDelivery(pair, count);
  }
}

/** Pairs whose messages arrive at once, but for the sender, which stands still at its first. */
class StalledSender extends StalledPairs {
  override send(pair: Pair, count: number): void {
    if (this.sent.length === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
    super.send(pair, count);
    this.onDelivery(pair, count);
  }

  override async settle(): Promise<void> {}
}

afterEach(() => {
  jest.restoreAllMocks();
});

describe("A fixed rate", () => {
  test("goes on while nothing arrives, one message a write, the senders in turn", async () => {
    const pairs = new StalledPairs();
    await paced(pairs, 0);
    expect(pairs.sent.map(({ pair, count }) => [pairs.all.indexOf(pair), count])).toEqual(
      Array.from({ length: PER_SECOND * (MEASURE_MS / 1000) }, (_, n) => [n % 3, 1]),
    );
  });

  test("counts all that a stall delayed, each message since it was due", async () => {
    const { latency } = await paced(new StalledPairs(), 0);
    expect(latency.p50).toBeGreaterThanOrEqual(MEASURE_MS / 2 - 1);
    expect(latency.p999).toBeGreaterThanOrEqual(MEASURE_MS - 1);
  });

  test("counts the generator's own stalls, too", async () => {
    const { latency, sentLate } = await paced(new StalledSender(), 0);
    expect(latency.p999).toBeGreaterThanOrEqual(STALL_MS - 1);
    expect(sentLate).toBeGreaterThanOrEqual(STALL_MS - 2);
  });

  test("leaves out what was due while all got warm", async () => {
    const pairs = new StalledPairs();
    const { latency } = await paced(pairs, 200);
    expect(pairs.sent).toHaveLength(500);
    // So far apart was what counts due, from its middle to its first.
    expect(latency.p999 - latency.p50).toBeCloseTo(MEASURE_MS / 2);
  });
});

async function paced(pairs: StalledPairs, warmUpMs: number) {
  const pids = { own: process.pid };
  return await pace(pairs as unknown as Pairs, { perSecond: PER_SECOND, warmUpMs, measureMs: MEASURE_MS, pids });
}
