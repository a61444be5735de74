import { setTimeout as delay } from "node:timers/promises";
import { MEMORY_PROBE } from "../../../support/pod-process.ts";
import { maxOpenFiles, type Pids, residentBytes, type Span, socketBytes, totalCpu } from "../../accounting.ts";
import { median, type Section, shown, times } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import type { Carried } from "../load/pairs.ts";
import { inRounds, PAIRS, type Plan } from "../plan.ts";
import {
  RECEIVING,
  REDIS,
  SENDING,
  SIGNINGS,
  type SigningAlgorithm,
  SYSTEM_TITLES,
  type SystemName,
  startAgentRelay,
  startSystem,
} from "../systems.ts";
import { warmPairs } from "./relay.ts";

/** What agents cost that are there: their heartbeats, their memory, and what they cost others. */

/** As many as a connection may carry: the question here is what agents cost, not what sockets do. */
const AGENTS_EACH = 100;
const BEATING_AGENTS = 20_000;
const BEAT_EVERY_SECONDS = 15;
const PER_SECOND = BEATING_AGENTS / BEAT_EVERY_SECONDS;
/** µs at most. Source: docs/performance.md#aims. */
const BEAT_LIMITS: Readonly<Record<SigningAlgorithm, number>> = { "hmac-sha256": 150, ed25519: 235 };
const ROLES = [SENDING, RECEIVING, REDIS] as const;
/** Their titles. */
const COLUMNS = ["one pod", "the other", "Redis"];

type Beats = Span & { readonly answered: number };

export async function heartbeatSections(plan: Plan): Promise<Section[]> {
  const { warmUpMs, measureMs, ours } = plan;
  const costOf = (beats: Beats) => totalCpu(beats) / beats.answered;
  const measure = async (alg: SigningAlgorithm): Promise<Beats> => {
    await using under = await startAgentRelay(ours, alg);
    await using generator = await Generator.start(under.speech);
    await generator.gather(under.ports, BEATING_AGENTS / AGENTS_EACH, AGENTS_EACH);
    return await generator.beat({ perSecond: PER_SECOND, warmUpMs, measureMs, pids: under.pids });
  };
  const { over, data } = await inRounds(plan, "heartbeats", SIGNINGS, measure, (beats) => `${shown(costOf(beats))} µs`);
  const rows = SIGNINGS.map((alg) => [
    alg,
    shown(over(alg, ({ answered, seconds }) => answered / seconds)),
    shown(over(alg, percentOf)),
    shown(over(alg, costOf)),
    ...ROLES.map((role) => shown(over(alg, ({ cpu, answered }) => (cpu[role] ?? Number.NaN) / answered))),
  ]);
  return [
    {
      title: "Heartbeats",
      about:
        `${shown(BEATING_AGENTS)} registered agents, ${AGENTS_EACH} on each connection, over two pods, one heartbeat each ` +
        `in ${BEAT_EVERY_SECONDS} s; CPU of both pods and Redis.`,
      head: ["signed with", "heartbeats/s", "% of one core", "µs a heartbeat", ...COLUMNS],
      rows,
      aims: SIGNINGS.map((alg) => ({
        name: `µs a heartbeat at ${shown(PER_SECOND)}/s, ${alg}`,
        value: over(alg, costOf),
        most: BEAT_LIMITS[alg],
      })),
      data,
    },
  ];
}

/** Of a core: all processes, or one of them. */
function percentOf(span: Span, role?: string): number {
  const micros = role === undefined ? totalCpu(span) : (span.cpu[role] ?? Number.NaN);
  return micros / span.seconds / 10_000;
}

const SETTLE_MS = 1000;
/** What 10,000 connections may take, % of a core. Source: docs/performance.md#aims. */
const AIMED_AT = 10_000;
const IDLE_LIMITS: Readonly<Record<SigningAlgorithm, number>> = { "hmac-sha256": 15, ed25519: 21 };

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
  const measure = (alg: SigningAlgorithm) => measureIdle(plan, alg, connections);
  const tell = (idle: Idle) => `${shown(percentOf(idle))} % of a core`;
  const { over, data } = await inRounds(plan, "idle", SIGNINGS, measure, tell);
  const percent = (alg: SigningAlgorithm, role?: string) => over(alg, (idle) => percentOf(idle, role));
  const mebibytes = (bytes: number) => shown(bytes / 2 ** 20);
  const rows = SIGNINGS.map((alg) => [
    alg,
    shown(over(alg, ({ answered, seconds }) => answered / seconds)),
    ...[undefined, ...ROLES].map((role) => shown(percent(alg, role))),
    ...ROLES.map((role) => mebibytes(over(alg, ({ bytes }) => bytes[role] ?? Number.NaN))),
    mebibytes(over(alg, ({ socketBytes }) => socketBytes)),
  ]);
  const aims = SIGNINGS.map((alg) => ({
    name: `% of a core for ${shown(AIMED_AT)} idle connections, ${alg}`,
    value: percent(alg),
    most: IDLE_LIMITS[alg],
  }));
  return [
    {
      title: "Idle connections",
      about:
        `${shown(connections)} connections over two pods, one agent on each, which does nothing but send a heartbeat every ` +
        `${BEAT_EVERY_SECONDS} s. CPU in % of a core; resident memory of each process, after a garbage collection, and what ` +
        "the kernel keeps for the servers' ends of the connections, without their entries in its directory cache, in MiB." +
        limitText(connections, plan.idleConnections),
      head: [
        ...["signed with", "heartbeats/s", "% of a core"],
        ...["%", "MiB"].flatMap((unit) => COLUMNS.map((column) => `${column}, ${unit}`)),
        "kernel, MiB",
      ],
      rows,
      aims: connections < AIMED_AT ? [] : aims,
      data: { connections, measured: data },
    },
  ];
}

async function measureIdle({ idleMs, ours }: Plan, alg: SigningAlgorithm, connections: number): Promise<Idle> {
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

/** Connections that are there before the first look, so that code and pools do not count. */
const GROUND = 500;
/** Neither acks nor an adapter change what a connection holds. */
const NODE_SERVERS: readonly SystemName[] = ["agent-relay", "bare", "socket.io"];

/** Bytes. */
interface Memory {
  readonly server: number;
  readonly redis: number;
}

export async function memorySections(plan: Plan): Promise<Section[]> {
  const connections = connectionsWithin(plan.memoryConnections, GROUND);
  const systems = plan.systems.filter((name) => NODE_SERVERS.includes(name));
  const total = ({ server, redis }: Memory) => server + redis;
  const measure = (name: SystemName) => measureMemory(name, connections);
  const tell = (memory: Memory) => `${shown(total(memory) / 1024)} KiB a connection`;
  const { over, data } = await inRounds(plan, "memory", systems, measure, tell);
  const toBare = (name: SystemName) => over(name, total) / over("bare", total);
  return [
    {
      title: "Memory",
      about:
        `Resident memory that each of ${shown(connections)} registered connections adds, one agent on each, KiB, after a ` +
        `garbage collection.${limitText(connections, plan.memoryConnections)}`,
      head: ["", "KiB", "server", "Redis", "to bare ws"],
      rows: systems.map((name) => [
        SYSTEM_TITLES[name],
        ...[total, ({ server }: Memory) => server, ({ redis }: Memory) => redis].map((figure) =>
          shown(over(name, figure) / 1024),
        ),
        name === "bare" ? "" : times(toBare(name)),
      ]),
      aims: Number.isFinite(toBare("agent-relay"))
        ? [{ name: "memory of a registered connection to bare ws's", value: toBare("agent-relay"), most: 1.2 }]
        : [],
      data: { connections, measured: data },
    },
  ];
}

/** Of one connection. */
async function measureMemory(name: SystemName, connections: number): Promise<Memory> {
  await using under = await startSystem(name, () => MEMORY_PROBE);
  await using generator = await Generator.start(under.speech);
  const port = under.ports[0] as number;
  await generator.gather([port], GROUND, 1);
  const before = await settledMemory(under.pids);
  await generator.gather([port], connections, 1);
  const after = await settledMemory(under.pids);
  return {
    server: (after.server - before.server) / connections,
    redis: (after.redis - before.redis) / connections,
  };
}

async function settledMemory(pids: Pids): Promise<Memory> {
  const server = pids[SENDING] as number;
  process.kill(server, "SIGUSR2");
  await delay(SETTLE_MS);
  return { server: residentBytes(server), redis: residentBytes(pids[REDIS] as number) };
}

const CROWDS = [1000, 10_000, 50_000] as const;
const WINDOW = 8;

export async function growthSections(plan: Plan): Promise<Section[]> {
  const { warmUpMs, measureMs, ours } = plan;
  const costOf = (carried: Carried) => totalCpu(carried) / carried.delivered;
  const measure = async (agents: number) => {
    await using under = await startSystem("agent-relay", undefined, ours);
    await using generator = await warmPairs(under, plan, WINDOW);
    await generator.gather(under.ports, agents / AGENTS_EACH, AGENTS_EACH);
    return await generator.press({ window: WINDOW, warmUpMs, measureMs, pids: under.pids });
  };
  const tell = (carried: Carried) => `${costOf(carried).toFixed(1)} µs an envelope`;
  const { of, over, data } = await inRounds<number, Carried>(plan, "growth, agents", CROWDS, measure, tell);
  const fewest = of(CROWDS[0]).map(costOf);
  const growth = median(of(50_000).map((carried, round) => costOf(carried) / (fewest[round] ?? Number.NaN)));
  return [
    {
      title: "Growth",
      about:
        `Cost of a delivered envelope between ${PAIRS} pairs at window ${WINDOW} while so many other agents are ` +
        `registered, ${AGENTS_EACH} on each connection.`,
      head: ["agents", "µs"],
      rows: CROWDS.map((agents) => [shown(agents), shown(over(agents, costOf))]),
      aims: [{ name: "cost among 50,000 agents to that among 1,000", value: growth, most: 1.1 }],
      data,
    },
  ];
}

/** What a process has open beside the connections. */
const SPARE_FILES = 100;

/** As many connections as are wanted, beside others, or as one process may have open. */
export function connectionsWithin(wanted: number, others = 0): number {
  return Math.min(wanted, maxOpenFiles() - others - SPARE_FILES);
}

/** Why there are fewer than wanted, where there are. */
export function limitText(connections: number, wanted: number): string {
  return connections < wanted ? ` Only so many, since \`ulimit -n\` is ${maxOpenFiles()}.` : "";
}
