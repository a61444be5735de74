import type { Pressed } from "../load/pairs.ts";
import { PAIRS, type Plan } from "../plan.ts";
import { type Aim, type Section, shown, times } from "../section.ts";
import { median } from "../statistics.ts";
import { RECEIVING, REDIS, SENDING, SYSTEM_TITLES, type SystemName } from "../systems/system.ts";
import { measureRelay, PACE_PER_SECOND, type Round } from "./relay.ts";

/** At most so many times the peer's cost, by window. Source: docs/performance.md#aims. */
const AIMS: readonly { readonly peer: SystemName; readonly most: Readonly<Record<number, number>> }[] = [
  { peer: "bare", most: { 1: 1.3, 8: 1.1, 32: 1.1 } },
  { peer: "socket.io", most: { 1: 0.7, 8: 0.55, 32: 0.55 } },
];

export async function relaySections(plan: Plan): Promise<Section[]> {
  const rounds = await measureRelay(plan);
  return [costSection(plan, rounds), latencySection(plan, rounds)];
}

function costSection({ systems, windows }: Plan, rounds: readonly Round[]): Section {
  const rowOf = (system: SystemName, window: number) => {
    const cells = cellsOf(rounds, system, window);
    const over = (figure: (cell: Pressed & { cost: number }) => number) => median(cells.map(figure));
    const share = (role: string) => shown(over(({ cpu, delivered }) => (cpu[role] ?? Number.NaN) / delivered));
    return [
      SYSTEM_TITLES[system],
      String(window),
      shown(over(({ delivered, seconds }) => delivered / seconds)),
      shown(over(({ cost }) => cost)),
      share(SENDING),
      share(RECEIVING),
      share(REDIS),
      ...ratiosToPeers(rounds, system, window),
    ];
  };
  const missing = systems.includes("nats") ? "" : " NATS was not measured: there is no `nats-server` on the PATH.";
  return {
    title: "Delivered envelopes",
    about:
      `${PAIRS} senders on one pod, ${PAIRS} targets on another, payload 100 bytes, so many in flight per sender. ` +
      "µs are CPU of all server processes and Redis for one delivered envelope. Ours are signed (HMAC), guarded against " +
      `replay, checked for presence and acknowledged; the peers check nothing.${missing}`,
    head: ["", "window", "delivered/s", "µs", "sending pod", "receiving pod", "Redis", "ours to it"],
    rows: windows.flatMap((window) => systems.map((system) => rowOf(system, window))),
    aims: aimsOf(windows, rounds),
    data: rounds,
  };
}

function latencySection({ systems }: Plan, rounds: readonly Round[]): Section {
  const over = (system: SystemName, figure: (round: Round) => number) =>
    shown(median(rounds.filter((round) => round.system === system).map(figure)));
  const rows = systems.map((system) => [
    SYSTEM_TITLES[system],
    over(system, ({ latency }) => latency.p50),
    over(system, ({ latency }) => latency.p99),
  ]);
  return {
    title: "Latency",
    about: `From the sender's write to the target's read, ms, at ${shown(PACE_PER_SECOND)} envelopes a second.`,
    head: ["", "p50", "p99"],
    rows,
    aims: [],
    data: null,
  };
}

function cellsOf(rounds: readonly Round[], system: SystemName, window: number) {
  const ofSystem = rounds.filter((round) => round.system === system);
  return ofSystem.flatMap(({ cells }) => cells.filter((cell) => cell.window === window));
}

/** Our cost to a peer's, round by round: what slowed a whole round slowed both. */
function ratio(rounds: readonly Round[], peer: SystemName, window: number): number {
  const peers = cellsOf(rounds, peer, window);
  const ours = cellsOf(rounds, "agent-relay", window);
  if (ours.length !== peers.length) return Number.NaN;
  return median(ours.map(({ cost }, round) => cost / (peers[round]?.cost ?? Number.NaN)));
}

function ratiosToPeers(rounds: readonly Round[], system: SystemName, window: number): string[] {
  return [system === "agent-relay" ? "" : times(ratio(rounds, system, window))];
}

function aimsOf(windows: readonly number[], rounds: readonly Round[]): Aim[] {
  const all = AIMS.flatMap(({ peer, most }) =>
    windows.flatMap((window) => {
      const limit = most[window];
      if (limit === undefined) return [];
      return [
        { name: `cost to ${SYSTEM_TITLES[peer]}'s, window ${window}`, value: ratio(rounds, peer, window), most: limit },
      ];
    }),
  );
  return all.filter(({ value }) => Number.isFinite(value));
}
