import type { Redis } from "ioredis";
import { scrape } from "../../support/http.ts";
import { residentBytes } from "../accounting.ts";
import { type Fleet, ROLES, type Role } from "./fleet.ts";
import { type RedisMemory, redisMemory } from "./redis-memory.ts";

/** Bytes, after a garbage collection. */
export interface ProcessMemory {
  readonly heap: number;
  readonly resident: number;
}

/** What was there at one moment. */
export interface Sample {
  /** Since the traffic began. */
  readonly ms: number;
  /** Of those that ran. */
  readonly processes: Readonly<Partial<Record<Role, ProcessMemory>>>;
  readonly redis: RedisMemory;
  readonly redisResident: number;
  readonly agentsOnline: number;
}

export async function takeSample(
  fleet: Fleet,
  redis: Redis,
  { ms, agentsOnline }: Pick<Sample, "ms" | "agentsOnline">,
): Promise<Sample> {
  const memory = await Promise.all(ROLES.map(async (role) => [role, await processMemory(fleet, role)]));
  return {
    ms,
    agentsOnline,
    processes: Object.fromEntries(memory.filter(([, known]) => known !== undefined)),
    redis: await redisMemory(redis),
    redisResident: residentBytes(await fleet.relay.redis.pid()),
  };
}

/** Undefined while the process is replaced. */
async function processMemory(fleet: Fleet, role: Role): Promise<ProcessMemory | undefined> {
  const running = fleet.running(role);
  if (running === undefined) return undefined;
  try {
    await running.process.held();
    const heap = (await scrape(running.metrics)).value("nodejs_heap_size_used_bytes") as number;
    return { heap, resident: residentBytes(running.process.pid) };
  } catch (error) {
    if (fleet.running(role)?.process === running.process) throw error;
    return undefined;
  }
}
