import type { Redis } from "ioredis";
import { REDIS_LIMITS } from "./limits.ts";
import { LinkDownError } from "./link-down.ts";

/**
 * Checks that Redis has sharded pub/sub, takes writes, and keeps what it holds. Returns its INFO. Source: docs/redis.md.
 * @throws LinkDownError `version`, `readonly` or `eviction`.
 */
export async function checkServer(client: Redis): Promise<string> {
  const info = await client.info();
  const version = /^redis_version:([\d.]+)/m.exec(info)?.[1] ?? "unknown";
  if (!(Number.parseInt(version, 10) >= REDIS_LIMITS.oldestMajorVersion)) {
    throw new LinkDownError("version", `Redis ${version} is older than ${REDIS_LIMITS.oldestMajorVersion}.0`);
  }
  if (/^role:slave\b/m.test(info)) throw new LinkDownError("readonly", "Redis is a replica");
  checkPolicy(info);
  return info;
}

/**
 * A key of the replay guard that Redis evicted would let a replay through.
 * @param info INFO, or of it at least the section memory.
 * @throws LinkDownError `eviction`.
 */
export function checkPolicy(info: string): void {
  const policy = /^maxmemory_policy:([a-z-]+)/m.exec(info)?.[1] ?? "unknown";
  if (policy !== "noeviction") throw new LinkDownError("eviction", `maxmemory-policy is ${policy}, not noeviction`);
}
