import type { Redis } from "ioredis";
import { countersIn } from "../../support/window-view.ts";

/** Keys of one kind: how many, and what they take, bytes. */
export interface Family {
  readonly keys: number;
  readonly bytes: number;
}

export interface RedisMemory {
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
export async function redisMemory(client: Redis): Promise<RedisMemory> {
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
