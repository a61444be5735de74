import { setTimeout as delay } from "node:timers/promises";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { createLogger } from "relay-runtime/logging.ts";
import type { Acceptance, AcceptanceItem } from "relay-window/acceptance/acceptance.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { PodChannel } from "relay-window/channel/pod-channel.ts";
import { principalOf } from "relay-window/limits/principals.ts";
import { KnownEpochs } from "relay-window/presence/held-routes.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { instant, type Pids, type Span, spanOf } from "../../accounting.ts";
import { takeOrders } from "../../ordered-process.ts";
import { percentile } from "../../report.ts";
import { PAYLOAD } from "./dialects.ts";
import { dueAt, sendOnSchedule } from "./pairs.ts";

/**
 * Load on Redis alone, in two processes: one with pods to which envelopes come already verified, at a fixed rate or at their most;
 * one with a pod that has all targets and counts what comes in for them.
 */

export type Order =
  | ({ readonly order: "openSenders"; readonly pods: number } & Place)
  | ({ readonly order: "offer" } & Offer)
  | ({ readonly order: "fill" } & Fill)
  | ({ readonly order: "openReceiver"; readonly targets: readonly string[] } & Place)
  | { readonly order: "beat" }
  | { readonly order: "count" };

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

async function openSenders({ pods: count, ...place }: Place & { readonly pods: number }): Promise<void> {
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

/** Of a pod, all that is between a verified envelope and Redis; nothing of its websockets and signatures. */

/** Where pods find Redis, and in how many partitions. */
export interface Place {
  readonly url: string;
  readonly partitions: number;
}

const LOGGER = createLogger({ service: "bench", level: "error" });
const KEY_ID = "load";
const PRINCIPAL = principalOf({ keyId: KEY_ID });
/** As long as that of HMAC. */
const SIG = "A".repeat(43);
const PAYLOAD_TEXT = JSON.stringify(PAYLOAD);
const RUN = `${Date.now().toString(36)}-${process.pid}`;

let serial = 0;

interface PodAcceptance {
  readonly calls: RedisCalls;
  readonly acceptor: Acceptor;
}

/** Resolves when it is in the window that is open; the first of all opens one. */
async function openPod({ url, partitions }: Place, pod: string): Promise<PodAcceptance> {
  const calls = redisAt({ url, name: "ws-connector", logger: LOGGER });
  const window = new ProcessWindow({ link: calls, partitions, deployId: "bench", logger: LOGGER });
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const { proofFreshnessMs } = SESSION_LIMITS;
  const known = { epochs: new KnownEpochs(partitions), agentsPerKey: 0, agentsPerIssuer: 0 };
  const acceptor = new Acceptor({
    link: calls,
    window,
    pod,
    ...known,
    offlineAfterMs,
    proofFreshnessMs,
    logger: LOGGER,
  });
  await calls.start();
  await window.known();
  await window.start();
  return { calls, acceptor };
}

/** An envelope as verification leaves it; nobody looks at its signature any more. */
function verifiedMessage(from: string, to: string, done: (acceptance: Acceptance) => void): AcceptanceItem {
  const [id, ts] = [nextId(), Date.now()];
  const envelope = { id, type: "message.send" as const, from, to, payload: PAYLOAD, ts, key_id: KEY_ID };
  const text =
    `{"from":"${from}","id":"${id}","key_id":"${KEY_ID}","payload":${PAYLOAD_TEXT},"sig":"${SIG}",` +
    `"to":"${to}","ts":${ts},"type":"message.send"}`;
  return { envelope, kind: "message", text, origin: "websocket", principal: PRINCIPAL, connection: "load", done };
}

function verifiedHeartbeat(from: string, done: (acceptance: Acceptance) => void): AcceptanceItem {
  const [id, ts] = [nextId(), Date.now()];
  const envelope = { id, type: "agent.heartbeat" as const, from, payload: {}, ts, key_id: KEY_ID };
  const text = JSON.stringify({ ...envelope, sig: SIG });
  return { envelope, kind: "heartbeat", text, origin: "websocket", principal: PRINCIPAL, connection: "load", done };
}

function nextId(): string {
  serial += 1;
  return `${RUN}-${serial}`;
}

let pod: PodAcceptance;
let targets: readonly string[] = [];
let delivered = 0;

async function openReceiver(order: Place & { readonly targets: readonly string[] }): Promise<void> {
  targets = order.targets;
  const name = `pod_bench-${process.pid}`;
  pod = await openPod(order, name);
  const channel = new PodChannel({ calls: pod.calls, pod: name, partitions: order.partitions });
  channel.listen({
    deliver: () => {
      delivered += 1;
    },
    superseded: () => {},
    probe: () => {},
    disconnect: () => {},
    traced: () => {},
  });
  await channel.start();
}

/** From the first heartbeat on the pod has an agent that nobody else has. @throws Error unless it has them all. */
async function beat(): Promise<void> {
  const outcomes = targets.map(async (target) => {
    const { promise, resolve } = Promise.withResolvers<{ readonly outcome: string }>();
    pod.acceptor.accept(verifiedHeartbeat(target, resolve));
    const { outcome } = await promise;
    if (outcome !== "accepted") throw new Error(`The heartbeat of ${target} was answered with: ${outcome}`);
  });
  await Promise.all(outcomes);
}

takeOrders(async (order: Order): Promise<unknown> => {
  switch (order.order) {
    case "openSenders":
      return await openSenders(order);
    case "offer":
      return await offer(order);
    case "fill":
      return await fill(order);
    case "openReceiver":
      return await openReceiver(order);
    case "beat":
      return await beat();
    case "count":
      return delivered;
  }
});
