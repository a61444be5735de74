import { median, type Section, shown } from "../../report.ts";
import type { Paced } from "../load/pace.ts";
import type { Carried } from "../load/pairs.ts";
import { contendersOf, PAIRS, type Plan, titleOf } from "../plan.ts";
import { REDIS } from "../systems/system.ts";
import {
  aimsOf,
  type Cell,
  cellsOf,
  costCells,
  inTheSameRounds,
  type Limits,
  pacedPairs,
  ratioCell,
  shareOf,
  type Trial,
  warmPairs,
} from "./comparison.ts";

/** By window. Source: docs/performance.md#aims. */
const WINDOW_LIMITS: readonly Limits<Cell>[] = [
  {
    name: (window) => `cost to bare ws + ioredis's, window ${window}`,
    peers: ["bare"],
    most: { 1: 1.3, 8: 1, 32: 0.95 },
  },
  {
    name: (window) => `cost to the better Socket.IO's, window ${window}`,
    peers: ["socket.io", "socket.io-sharded"],
    most: { 1: 0.6, 8: 0.4, 32: 0.4 },
  },
];

/** So many in flight per sender. */
export function windowTrial(plan: Plan): Trial<Carried> {
  const { windows, warmUpMs, measureMs } = plan;
  return {
    title: "relay",
    loads: windows,
    warm: (under) => warmPairs(under, plan, Math.max(...windows)),
    measure: ({ pids }, generator, window) => generator.press({ window, warmUpMs, measureMs, pids }),
  };
}

export async function relaySections(plan: Plan): Promise<Section[]> {
  const { systems, windows } = plan;
  const cells = await inTheSameRounds(plan, windowTrial(plan));
  const missing = systems.includes("nats") ? "" : " NATS was not measured: there is no `nats-server` on the PATH.";
  const rows = windows.flatMap((window) =>
    contendersOf(plan).map((system) => [
      titleOf(system, plan),
      String(window),
      ...costCells(cellsOf(cells, system, window)),
      ratioCell(cells, system, window),
    ]),
  );
  return [
    {
      title: "Delivered envelopes",
      about:
        `${PAIRS} senders on one pod, ${PAIRS} targets on another, payload 100 bytes, so many in flight per sender. ` +
        "µs are CPU of all server processes and Redis for one delivered envelope. Ours are signed (HMAC), guarded against " +
        `replay, checked for presence and acknowledged; the peers check nothing.${missing}`,
      head: ["", "window", "delivered/s", "µs", "sending pod", "receiving pod", "Redis", "ours to it"],
      rows,
      aims: aimsOf(WINDOW_LIMITS, cells),
      data: cells,
    },
  ];
}

/** By envelopes a second. Source: docs/performance.md#aims. */
const RATE_LIMITS: readonly Limits<Cell<Paced>>[] = [
  {
    name: (rate) => `cost to that of the bare relay that acks, at ${shown(rate)}/s`,
    peers: ["bare-acks"],
    most: { 1000: 1.25, 5000: 1.2, 10000: 1.2 },
  },
  {
    name: (rate) => `cost in Redis alone to bare ws + ioredis's, at ${shown(rate)}/s`,
    peers: ["bare"],
    figure: shareOf(REDIS),
    most: { 5000: 2 },
  },
  {
    name: (rate) => `the same with RELAY_GATHER_MS=1, at ${shown(rate)}/s`,
    peers: ["bare"],
    own: "agent-relay-gathering",
    figure: shareOf(REDIS),
    most: { 5000: 1.4 },
  },
  {
    name: (rate) => `cost to the better Socket.IO's, at ${shown(rate)}/s`,
    peers: ["socket.io", "socket.io-sharded"],
    most: { 5000: 0.8 },
  },
  {
    name: (rate) => `p99 to bare ws + ioredis's, at ${shown(rate)}/s`,
    peers: ["bare"],
    figure: ({ latency }) => latency.p99,
    most: { 1000: 1.5 },
  },
];

/** So many a second, on schedule. */
export function rateTrial(plan: Plan): Trial<Paced> {
  const { rates, warmUpMs, paceMs } = plan;
  return {
    title: "rates",
    loads: rates,
    warm: (under) => pacedPairs(under, plan, Math.max(...rates)),
    measure: ({ pids }, generator, perSecond) => generator.pace({ perSecond, warmUpMs, measureMs: paceMs, pids }),
  };
}

export async function rateSections(plan: Plan): Promise<Section[]> {
  const { rates } = plan;
  const cells = await inTheSameRounds(plan, rateTrial(plan));
  const rows = rates.flatMap((rate) =>
    contendersOf(plan).map((system) => {
      const own = cellsOf(cells, system, rate);
      const over = (figure: (cell: Paced) => number) => shown(median(own.map(figure)));
      return [
        titleOf(system, plan),
        shown(rate),
        ...costCells(own),
        ratioCell(cells, system, rate),
        over(({ latency }) => latency.p50),
        over(({ latency }) => latency.p99),
        over(({ latency }) => latency.p999),
      ];
    }),
  );
  return [
    {
      title: "Fixed rates",
      about:
        `So many envelopes a second in all, from ${PAIRS} senders in turn, signed ahead, one write each, on a schedule that waits ` +
        "for no answer. µs as above; p50, p99 and p99.9 in ms, from when an envelope was due to its target's read.",
      head: [
        "",
        "a second",
        "delivered/s",
        "µs",
        "sending pod",
        "receiving pod",
        "Redis",
        "ours to it",
        "p50",
        "p99",
        "p99.9",
      ],
      rows,
      aims: aimsOf(RATE_LIMITS, cells),
      data: cells,
    },
  ];
}
