import { type CredentialRecord, parseCredentials } from "./records/credential.ts";
import { partitionKeys } from "./redis/keys.ts";
import { partitionOf } from "./redis/partitions.ts";
import type { RedisLink } from "./redis/redis-link.ts";

/**
 * The credentials that an agent registered with last, the newest first; none of an agent that was not seen. Whether they
 * hold is for the caller to judge. @throws ServiceError `unavailable`. Source: docs/protocol.md#credentials.
 */
export async function readCredentials(link: RedisLink, agent: string, partitions: number): Promise<CredentialRecord[]> {
  const p = partitionOf(agent, partitions);
  const keys = [partitionKeys.credential(p, agent), partitionKeys.presence(p)];
  const lines = (await link.run("read_credentials", keys, [agent])) as string | null;
  return lines === null ? [] : parseCredentials(lines);
}
