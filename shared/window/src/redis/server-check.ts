import type { Redis } from "ioredis";
import { REDIS_LIMITS } from "./limits.ts";
import { LinkDownError } from "./link-down.ts";
import { SLOTS } from "./partitions.ts";

/**
 * Checks that Redis has sharded pub/sub, takes writes, keeps what it holds, and is part of a cluster where REDIS_URL says so.
 * Returns its INFO. Source: docs/redis.md.
 * @throws LinkDownError `version`, `cluster`, `readonly`, `eviction`, `coverage` or `slots`.
 */
export async function checkServer(client: Redis, isNode: boolean): Promise<string> {
  const info = await client.info();
  const version = /^redis_version:([\d.]+)/m.exec(info)?.[1] ?? "unknown";
  if (!(Number.parseInt(version, 10) >= REDIS_LIMITS.oldestMajorVersion)) {
    throw new LinkDownError("version", `Redis ${version} is older than ${REDIS_LIMITS.oldestMajorVersion}.0`);
  }
  if (/^cluster_enabled:1\b/m.test(info) !== isNode) {
    throw new LinkDownError("cluster", isNode ? "Redis is no part of a cluster" : "Redis is part of a cluster");
  }
  if (/^role:slave\b/m.test(info)) throw new LinkDownError("readonly", "Redis is a replica");
  checkPolicy(info);
  if (isNode) await checkCoverage(client);
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

/**
 * A node that takes the whole cluster for failed refuses all slots. It misses primaries that it alone gives up: no majority is left to
 * agree. Else most nodes agree that slots are lost, or nobody has them, and the cluster wants all served, or serves none.
 * @throws LinkDownError `slots` or `coverage`.
 */
export async function checkCoverage(client: Redis): Promise<void> {
  const info = String(await client.cluster("INFO"));
  if (!/^cluster_state:fail/m.test(info)) return;
  const count = (name: string) => Number(new RegExp(`^cluster_slots_${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  if (count("pfail") > 0) throw new LinkDownError("slots", "the node does not reach most primaries of the cluster");
  if (count("fail") > 0 || count("assigned") < SLOTS) {
    throw new LinkDownError("coverage", "the cluster refuses all slots because some are not served");
  }
}
