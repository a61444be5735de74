import { partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { type CredentialRecord, parseCredentials } from "./credential.ts";

/**
 * The credentials that an agent registered with last, the newest first; none of an agent that was not seen. Whether they
 * hold is for the caller to judge. @throws ServiceError `unavailable`. Source: docs/protocol.md#credentials.
 */
export async function readCredentials(
  link: RedisCalls,
  window: ProcessWindow,
  agent: string,
): Promise<CredentialRecord[]> {
  const lines = (await window.read(partitionOf(agent, window.partitions), ({ credential, presence }) =>
    link.run("read_credentials", [credential(agent), presence], [agent]),
  )) as string | null;
  return lines === null ? [] : parseCredentials(lines);
}
