import type { Redis } from "ioredis";
import { REDIS_LIMITS } from "./limits.ts";
import { LinkDownError } from "./link-down.ts";

/**
 * Checks that Redis has sharded pub/sub and keeps what it holds: a key of the replay guard that it evicted would let a
 * replay through. Source: docs/redis.md#users.
 * @throws LinkDownError `version` or `eviction`.
 */
export async function checkServer(client: Redis): Promise<void> {
  const info = await client.info();
  const version = /^redis_version:([\d.]+)/m.exec(info)?.[1] ?? "unknown";
  if (!(Number.parseInt(version, 10) >= REDIS_LIMITS.oldestMajorVersion)) {
    throw new LinkDownError("version", `Redis ${version} is older than ${REDIS_LIMITS.oldestMajorVersion}.0`);
  }
  const policy = /^maxmemory_policy:([a-z-]+)/m.exec(info)?.[1] ?? "unknown";
  if (policy !== "noeviction") throw new LinkDownError("eviction", `maxmemory-policy is ${policy}, not noeviction`);
}
