import { setTimeout as delay } from "node:timers/promises";
import type { Acceptance } from "window/acceptance/acceptance.ts";
import { instant, type Pids, type Span, spanOf } from "../accounting.ts";
import { percentile } from "../statistics.ts";
import { takeOrders } from "./ordered-process.ts";
import { sendOnSchedule } from "./pace.ts";
import { openPod, type Place, type PodAcceptance, verifiedMessage } from "./pod-acceptance.ts";
import { dueAt } from "./schedule.ts";

/** Pods to which envelopes come at a fixed rate, already verified: one process for all of them. */

export type SendingOrder =
  | ({ readonly order: "open"; readonly pods: number } & Place)
  | ({ readonly order: "offer" } & Offer);

/** Envelopes at a fixed rate, the pods and the targets in turn. */
export interface Offer {
  readonly perSecond: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly targets: readonly string[];
  readonly pids: Pids;
}

export interface Offered extends Span {
  /** Accepted and delivered, in the span. */
  readonly delivered: number;
  /** Of Redis, in the span. */
  readonly calls: number;
  /** Accepted and delivered, before and after the span as well. */
  readonly deliveredInAll: number;
  /** ms by which this process was late, at worst of a hundred: what is late comes in together. */
  readonly sentLate: number;
}

let pods: PodAcceptance[] = [];
let accepted = 0;
let calls = 0;
let refusal: Acceptance | undefined;

takeOrders((order: SendingOrder): Promise<unknown> => (order.order === "open" ? open(order) : offer(order)));

async function open({ pods: count, ...place }: Place & { readonly pods: number }): Promise<void> {
  pods = await Promise.all(Array.from({ length: count }, (_, n) => openPod(place, `pod_bench-${process.pid}-${n}`)));
  for (const { acceptor } of pods) {
    acceptor.observe({
      called: () => {
        calls += 1;
      },
      settled: () => {},
    });
  }
}

/** @throws Error when one is not accepted for delivery. */
async function offer({ perSecond, warmUpMs, measureMs, targets, pids }: Offer): Promise<Offered> {
  const total = Math.round((perSecond * (warmUpMs + measureMs)) / 1000);
  const lateness: number[] = [];
  const startedAt = performance.now();
  const acceptedBefore = accepted;
  const send = (n: number) => {
    const round = Math.floor(n / targets.length);
    lateness.push(performance.now() - startedAt - dueAt(n, perSecond));
    const { acceptor } = pods[(n + round) % pods.length] as PodAcceptance;
    acceptor.accept(verifiedMessage("agent://load.sender", targets[n % targets.length] as string, count));
  };
  const sending = sendOnSchedule(send, { perSecond, total, startedAt });
  await delay(warmUpMs);
  const before = { ...instant(pids), accepted, calls };
  await delay(measureMs);
  const span = spanOf(before, instant(pids));
  const within = { delivered: accepted - before.accepted, calls: calls - before.calls };
  await sending;
  while (accepted < acceptedBefore + total) {
    if (refusal !== undefined) throw new Error(`An envelope was answered with: ${JSON.stringify(refusal)}`);
    await delay(1);
  }
  return { ...span, ...within, deliveredInAll: accepted - acceptedBefore, sentLate: percentile(lateness, 0.99) };
}

/** The acceptor goes on when this throws: whoever waits for all does. */
function count(acceptance: Acceptance): void {
  const isDelivered = "delivery" in acceptance && acceptance.outcome === "accepted" && acceptance.delivery === "online";
  if (isDelivered) accepted += 1;
  else refusal = acceptance;
}
