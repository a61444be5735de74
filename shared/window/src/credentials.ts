import { type CredentialRecord, parseCredential } from "./records/credential.ts";
import { partitionKeys } from "./redis/keys.ts";
import { partitionOf } from "./redis/partitions.ts";
import type { RedisLink } from "./redis/redis-link.ts";

/**
 * The credentials that an agent registered with last, the newest first; none of an agent that was not seen. Whether they
 * hold is for the caller to judge. @throws ServiceError `unavailable`. Source: docs/protocol.md#credentials.
 */
export async function readCredentials(link: RedisLink, agent: string, partitions: number): Promise<CredentialRecord[]> {
  const p = partitionOf(agent, partitions);
  const reply = (await link.run(
    "read_credentials",
    [partitionKeys.credential(p, agent), partitionKeys.presence(p)],
    [agent],
  )) as string[];
  const found: CredentialRecord[] = [];
  for (let index = 0; index < reply.length; index += 2) {
    found.push(parseCredential(reply[index] as string, reply[index + 1] as string));
  }
  return found.sort((a, b) => b.registeredAt - a.registeredAt);
}
