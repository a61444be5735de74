import { setTimeout as delay } from "node:timers/promises";
import { MEMORY_PROBE } from "../../../support/pod-process.ts";
import { residentBytes, type Span, socketBytes, totalCpu } from "../../accounting.ts";
import { median, type Section, shown } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import { inTurn, type Plan } from "../plan.ts";
import { SIGNINGS, type SigningAlgorithm, startAgentRelay } from "../systems/agent-relay.ts";
import { RECEIVING, REDIS, SENDING } from "../systems/system.ts";
import { connectionsWithin, limitText } from "./connections.ts";

const BEAT_EVERY_SECONDS = 15;
const SETTLE_MS = 1000;
const ROLES = [SENDING, RECEIVING, REDIS] as const;
/** What 10,000 connections may take, % of a core. Source: docs/performance.md#aims. */
const AIMED_AT = 10_000;
const LIMITS: Readonly<Record<SigningAlgorithm, number>> = { "hmac-sha256": 15, ed25519: 21 };

interface Idle extends Span {
  readonly answered: number;
  /** Resident, by role. */
  readonly bytes: Readonly<Record<string, number>>;
  /** In the kernel, for the servers' ends. */
  readonly socketBytes: number;
}

/** What agents cost that are there and do nothing: one on each connection, as most have it. */
export async function idleSections(plan: Plan): Promise<Section[]> {
  const connections = connectionsWithin(plan.idleConnections);
  const measured: Record<SigningAlgorithm, Idle[]> = { "hmac-sha256": [], ed25519: [] };
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const alg of inTurn(SIGNINGS, round)) {
      const idle = await measure(plan, alg, connections);
      measured[alg].push(idle);
      plan.say(`idle, round ${round + 1}, ${alg}: ${shown(percentOf(idle))} % of a core`);
    }
  }
  const over = (alg: SigningAlgorithm, figure: (idle: Idle) => number) =>
    median(measured[alg].map((idle) => figure(idle)));
  const mebibytes = (bytes: number) => shown(bytes / 2 ** 20);
  const rows = SIGNINGS.map((alg) => [
    alg,
    shown(over(alg, ({ answered, seconds }) => answered / seconds)),
    shown(over(alg, percentOf)),
    ...ROLES.map((role) => shown(over(alg, (idle) => percentOf(idle, role)))),
    ...ROLES.map((role) => mebibytes(over(alg, ({ bytes }) => bytes[role] ?? Number.NaN))),
    mebibytes(over(alg, ({ socketBytes }) => socketBytes)),
  ]);
  const columns = ["one pod", "the other", "Redis"];
  return [
    {
      title: "Idle connections",
      about:
        `${shown(connections)} connections over two pods, one agent on each, which does nothing but send a heartbeat every ` +
        `${BEAT_EVERY_SECONDS} s. CPU in % of a core; resident memory of each process, after a garbage collection, and what ` +
        "the kernel keeps for the servers' ends of the connections, without their entries in its directory cache, in MiB." +
        limitText(connections, plan.idleConnections),
      head: [
        "signed with",
        "heartbeats/s",
        "% of a core",
        ...columns.map((column) => `${column}, %`),
        ...columns.map((column) => `${column}, MiB`),
        "kernel, MiB",
      ],
      rows,
      aims: connections < AIMED_AT ? [] : SIGNINGS.map((alg) => aimOf(alg, over(alg, percentOf))),
      data: { connections, measured },
    },
  ];
}

function aimOf(alg: SigningAlgorithm, value: number) {
  return { name: `% of a core for ${shown(AIMED_AT)} idle connections, ${alg}`, value, most: LIMITS[alg] };
}

/** Of a core: all processes, or one of them. */
function percentOf(idle: Idle, role?: string): number {
  const micros = role === undefined ? totalCpu(idle) : (idle.cpu[role] ?? Number.NaN);
  return micros / idle.seconds / 10_000;
}

async function measure({ idleMs, ours }: Plan, alg: SigningAlgorithm, connections: number): Promise<Idle> {
  await using under = await startAgentRelay((role) => [...MEMORY_PROBE, ...ours(role)], alg);
  await using generator = await Generator.start(under.speech);
  const before = socketBytes();
  await generator.gather(under.ports, connections, 1);
  const perSecond = connections / BEAT_EVERY_SECONDS;
  const beats = await generator.beat({ perSecond, warmUpMs: idleMs, measureMs: idleMs, pids: under.pids });
  for (const role of [SENDING, RECEIVING]) process.kill(under.pids[role] as number, "SIGUSR2");
  await delay(SETTLE_MS);
  const bytes = Object.fromEntries(ROLES.map((role) => [role, residentBytes(under.pids[role] as number)]));
  // The other half is the clients'.
  return { ...beats, bytes, socketBytes: (socketBytes() - before) / 2 };
}
