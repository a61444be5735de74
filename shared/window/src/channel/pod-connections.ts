import { controlKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";

/** Open websockets of the pods: each tells its own under a lease. Source: docs/redis.md#leases-of-pods. */

/** @throws ServiceError `unavailable`. */
export async function leaseConnections(link: RedisCalls, pod: string, connections: number): Promise<void> {
  await link.run("lease_connections", [controlKeys.connections], [pod, connections, REDIS_LIMITS.shareLeaseMs]);
}

/** Of all pods, as they told within their leases. @throws ServiceError `unavailable`. */
export async function countConnections(link: RedisCalls): Promise<number> {
  const told = (await link.command("HGETALL", controlKeys.connections)) as string[];
  // Pod and `connections end` in turn.
  return told.reduce((sum, text, n) => (n % 2 === 0 ? sum : sum + Number(text.split(" ")[0])), 0);
}
