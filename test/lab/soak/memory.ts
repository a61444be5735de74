import type { Redis } from "ioredis";
import { scrape } from "../../support/http.ts";
import { countersIn } from "../../support/window-view.ts";
import { residentBytes } from "../accounting.ts";
import { ROLES, type Role, type SoakFleet } from "./fleet.ts";

/** Bytes, after a garbage collection. */
interface ProcessMemory {
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
  fleet: SoakFleet,
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
export async function processMemory(fleet: SoakFleet, role: Role): Promise<ProcessMemory | undefined> {
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

/** Keys of one kind: how many, and what they take, bytes. */
export interface Family {
  readonly keys: number;
  readonly bytes: number;
}

interface RedisMemory {
  /** `used_memory`, bytes. */
  readonly used: number;
  readonly keys: number;
  readonly families: Readonly<Record<string, Family>>;
  /** Envelopes that the guard remembers. */
  readonly guarded: number;
  /** Envelopes that were accepted since the window opened. */
  readonly accepted: number;
  readonly published: number;
}

/** What is kept for minutes or hours, and so grows as long as a soak runs. */
export const GROWING = ["seen", "session", "asked", "decided", "idempotency", "idempotency-body"] as const;
const SCAN_COUNT = 1000;

/** Every key by its kind: `relay:{p}:<kind>…`. */
async function redisMemory(client: Redis): Promise<RedisMemory> {
  const keys = await keysOf(client);
  const sizes = await manyReplies(client, keys, (key) => ["memory", "usage", key, "samples", "0"]);
  const families: Record<string, Family> = {};
  for (const [n, key] of keys.entries()) {
    const kind = kindOf(key);
    const { keys: counted, bytes } = families[kind] ?? { keys: 0, bytes: 0 };
    families[kind] = { keys: counted + 1, bytes: bytes + (sizes[n] ?? 0) };
  }
  const buckets = keys.filter((key) => kindOf(key) === "seen");
  const entries = await manyReplies(client, buckets, (key) => ["scard", key]);
  const counters = await countersIn(client, 1);
  const counted = (name: string) => counters[name] ?? 0;
  return {
    used: Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]),
    keys: keys.length,
    families,
    guarded: entries.reduce((sum, n) => sum + n, 0),
    accepted:
      counted("websocket_accepted") + counted("simple_send_accepted") + counted("simple_session_request_accepted"),
    published: counted("published_envelopes"),
  };
}

export function kindOf(key: string): string {
  return /^relay:\{\w+\}:([a-z-]+)/.exec(key)?.[1] ?? "unknown";
}

async function keysOf(client: Redis): Promise<string[]> {
  const keys = new Set<string>();
  let cursor = "0";
  do {
    const [next, found] = await client.scan(cursor, "COUNT", SCAN_COUNT);
    for (const key of found) keys.add(key);
    cursor = next;
  } while (cursor !== "0");
  return [...keys];
}

/** A key that expired meanwhile counts 0. */
async function manyReplies(
  client: Redis,
  keys: readonly string[],
  command: (key: string) => string[],
): Promise<number[]> {
  const replies = await client.pipeline(keys.map(command)).exec();
  return (replies ?? []).map(([, reply]) => Number(reply ?? 0));
}
