import { partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/** A stored credential with the id of its key. Source: shared/window/src/lua/lib/credential_records.lua. */
export interface CredentialRecord {
  readonly keyId: string;
  readonly token: string;
}

export function formatCredential({ keyId, token }: CredentialRecord): string {
  return `${keyId} ${token}`;
}

/** Lines of an agent's credentials. @param records the newest first. */
export function formatCredentials(records: readonly CredentialRecord[]): string {
  return records.map(formatCredential).join("\n");
}

/** Keeps the order of the lines. */
export function parseCredentials(lines: string): CredentialRecord[] {
  return lines.split("\n").map((line) => {
    const [keyId, token] = line.split(" ") as [string, string];
    return { keyId, token };
  });
}

/**
 * The credentials of an agent's last registers, the newest first. Empty for an agent that was not seen. The caller
 * checks whether they are valid.
 * @throws ServiceError `unavailable`. Source: docs/protocol.md#credentials.
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
