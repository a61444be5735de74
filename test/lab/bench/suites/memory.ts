import { setTimeout as delay } from "node:timers/promises";
import { MEMORY_PROBE } from "../../../support/pod-process.ts";
import { type Pids, residentBytes } from "../../accounting.ts";
import { median, type Section, shown, times } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import { inTurn, type Plan } from "../plan.ts";
import { startSystem } from "../systems/all.ts";
import { REDIS, SENDING, SYSTEM_TITLES, type SystemName } from "../systems/system.ts";
import { connectionsWithin, limitText } from "./connections.ts";

/** Connections that are there before the first look, so that code and pools do not count. */
const GROUND = 500;
/** Neither acks nor an adapter change what a connection holds. */
const NODE_SERVERS: readonly SystemName[] = ["agent-relay", "bare", "socket.io"];
const SETTLE_MS = 1000;

/** Bytes a connection. */
interface Growth {
  readonly server: number;
  readonly redis: number;
}

export async function memorySections(plan: Plan): Promise<Section[]> {
  const connections = connectionsWithin(plan.memoryConnections, GROUND);
  const systems = plan.systems.filter((name) => NODE_SERVERS.includes(name));
  const measured = Object.fromEntries(systems.map((name) => [name, [] as Growth[]])) as Record<SystemName, Growth[]>;
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const name of inTurn(systems, round)) {
      const growth = await measure(name, connections);
      measured[name].push(growth);
      plan.say(`memory, round ${round + 1}, ${name}: ${shown(totalOf(growth) / 1024)} KiB a connection`);
    }
  }
  const over = (name: SystemName, figure: (growth: Growth) => number) => median((measured[name] ?? []).map(figure));
  const toBare = (name: SystemName) => over(name, totalOf) / over("bare", totalOf);
  return [
    {
      title: "Memory",
      about:
        `Resident memory that each of ${shown(connections)} registered connections adds, one agent on each, KiB, after a ` +
        `garbage collection.${limitText(connections, plan.memoryConnections)}`,
      head: ["", "KiB", "server", "Redis", "to bare ws"],
      rows: systems.map((name) => [
        SYSTEM_TITLES[name],
        shown(over(name, totalOf) / 1024),
        shown(over(name, ({ server }) => server) / 1024),
        shown(over(name, ({ redis }) => redis) / 1024),
        name === "bare" ? "" : times(toBare(name)),
      ]),
      aims: Number.isFinite(toBare("agent-relay"))
        ? [{ name: "memory of a registered connection to bare ws's", value: toBare("agent-relay"), most: 1.2 }]
        : [],
      data: { connections, measured },
    },
  ];
}

function totalOf({ server, redis }: Growth): number {
  return server + redis;
}

async function measure(name: SystemName, connections: number): Promise<Growth> {
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

async function settledMemory(pids: Pids): Promise<Growth> {
  const server = pids[SENDING] as number;
  process.kill(server, "SIGUSR2");
  await delay(SETTLE_MS);
  return { server: residentBytes(server), redis: residentBytes(pids[REDIS] as number) };
}
