import { setTimeout as delay } from "node:timers/promises";
import type { Acceptance } from "relay-window/acceptance/acceptance.ts";
import type { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { instant, type Pids, type Span, spanOf } from "../../accounting.ts";
import { takeOrders } from "../../ordered-process.ts";
import { percentile } from "../../report.ts";
import { dueAt, sendOnSchedule } from "./pace.ts";
import { openPod, type Place, type PodAcceptance, verifiedMessage } from "./pod-acceptance.ts";

/** Pods to which envelopes come already verified, at a fixed rate or at their most: one process for all of them. */

export type SendingOrder =
  | ({ readonly order: "open"; readonly pods: number } & Place)
  | ({ readonly order: "offer" } & Offer)
  | ({ readonly order: "fill" } & Fill);

interface Measured {
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly targets: readonly string[];
  readonly pids: Pids;
}

/** Envelopes at a fixed rate, the pods and the targets in turn. */
export interface Offer extends Measured {
  readonly perSecond: number;
}

/** As many of each pod for each target are always under way: the next one follows the answer to one before it. */
export interface Fill extends Measured {
  readonly inFlight: number;
}

export interface Filled extends Span {
  /** Accepted and delivered, in the span. */
  readonly delivered: number;
  /** Of Redis, in the span. */
  readonly calls: number;
  /** Accepted and delivered, before and after the span as well. */
  readonly deliveredInAll: number;
}

export interface Offered extends Filled {
  /** ms by which this process was late, at worst of a hundred: what is late comes in together. */
  readonly sentLate: number;
}

const SENDER = "agent://load.sender";

let pods: PodAcceptance[] = [];
let accepted = 0;
let calls = 0;
let refusal: Acceptance | undefined;

takeOrders(async (order: SendingOrder): Promise<unknown> => {
  switch (order.order) {
    case "open":
      return await open(order);
    case "offer":
      return await offer(order);
    case "fill":
      return await fill(order);
  }
});

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
async function offer({ perSecond, targets, ...measured }: Offer): Promise<Offered> {
  const total = Math.round((perSecond * (measured.warmUpMs + measured.measureMs)) / 1000);
  const lateness: number[] = [];
  const startedAt = performance.now();
  const acceptedBefore = accepted;
  const send = (n: number) => {
    const round = Math.floor(n / targets.length);
    lateness.push(performance.now() - startedAt - dueAt(n, perSecond));
    const { acceptor } = pods[(n + round) % pods.length] as PodAcceptance;
    acceptor.accept(verifiedMessage(SENDER, targets[n % targets.length] as string, count));
  };
  const sending = sendOnSchedule(send, { perSecond, total, startedAt });
  const within = await span(measured);
  await sending;
  await untilAccepted(acceptedBefore + total);
  return { ...within, deliveredInAll: accepted - acceptedBefore, sentLate: percentile(lateness, 0.99) };
}

/** @throws Error when one is not accepted for delivery. */
async function fill({ inFlight, targets, ...measured }: Fill): Promise<Filled> {
  const acceptedBefore = accepted;
  let sent = 0;
  let isOver = false;
  const send = (acceptor: Acceptor, target: string) => {
    sent += 1;
    const next = (acceptance: Acceptance) => {
      count(acceptance);
      if (!isOver) send(acceptor, target);
    };
    acceptor.accept(verifiedMessage(SENDER, target, next));
  };
  for (const { acceptor } of pods) {
    for (const target of targets) for (let n = 0; n < inFlight; n += 1) send(acceptor, target);
  }
  const within = await span(measured);
  isOver = true;
  await untilAccepted(acceptedBefore + sent);
  return { ...within, deliveredInAll: accepted - acceptedBefore };
}

async function span({ warmUpMs, measureMs, pids }: Omit<Measured, "targets">): Promise<Omit<Filled, "deliveredInAll">> {
  await delay(warmUpMs);
  const before = { ...instant(pids), accepted, calls };
  await delay(measureMs);
  return { ...spanOf(before, instant(pids)), delivered: accepted - before.accepted, calls: calls - before.calls };
}

async function untilAccepted(total: number): Promise<void> {
  while (accepted < total) {
    if (refusal !== undefined) throw new Error(`An envelope was answered with: ${JSON.stringify(refusal)}`);
    await delay(1);
  }
}

/** The acceptor goes on when this throws: whoever waits for all does. */
function count(acceptance: Acceptance): void {
  const isDelivered = "delivery" in acceptance && acceptance.outcome === "accepted" && acceptance.delivery === "online";
  if (isDelivered) accepted += 1;
  else refusal = acceptance;
}
