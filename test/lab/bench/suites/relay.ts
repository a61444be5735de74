import type { Section } from "../../report.ts";
import type { Carried } from "../load/press.ts";
import { contendersOf, PAIRS, type Plan, titleOf } from "../plan.ts";
import { aimsOf, type Cell, cellsOf, costCells, type Limits, ratioCell } from "./comparison.ts";
import { inTheSameRounds, type Trial } from "./side-by-side.ts";
import { warmPairs } from "./warm-pairs.ts";

/** By window. Source: docs/performance.md#aims. */
const LIMITS: readonly Limits<Cell>[] = [
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
      aims: aimsOf(LIMITS, cells),
      data: cells,
    },
  ];
}
