import { readFile } from "node:fs/promises";
import { membersOf, textOf } from "../frames.ts";
import { parseJson } from "../parse-json.ts";
import type { TrustedKey } from "../types.ts";
import { Failure } from "./failure.ts";

/** Public keys of other agents, by agent id. */
type Trust = Record<string, TrustedKey[]>;

/**
 * Reads public records, one or a list of them, as `relay keygen` prints them.
 * @throws {Failure} `invalid_key`.
 */
export async function readTrust(files: readonly string[]): Promise<Trust> {
  const trust = new Map<string, TrustedKey[]>();
  for (const file of files) {
    for (const record of await recordsIn(file)) {
      const { key_id, alg, public_key, secret, agents } = membersOf(record);
      const keyId = textOf(key_id);
      const key = keyId === undefined ? undefined : trustedKey(keyId, alg, textOf(public_key), textOf(secret));
      if (key === undefined || !Array.isArray(agents)) throw invalid("A file of --trust contains an invalid record.");
      for (const agent of agents.map(String)) trust.set(agent, [...(trust.get(agent) ?? []), key]);
    }
  }
  return Object.fromEntries(trust);
}

function trustedKey(keyId: string, alg: unknown, publicKey?: string, secret?: string): TrustedKey | undefined {
  if (alg === "ed25519" && publicKey !== undefined) return { keyId, alg, publicKey };
  if (alg === "hmac-sha256" && secret !== undefined) return { keyId, alg, secret };
  return undefined;
}

async function recordsIn(file: string): Promise<unknown[]> {
  try {
    const value: unknown = parseJson(await readFile(file, "utf8"));
    return Array.isArray(value) ? value : [value];
  } catch {
    throw invalid("A file of --trust cannot be read, or is not JSON.");
  }
}

function invalid(message: string): Failure {
  return new Failure(
    "invalid_key",
    message,
    "Each file contains one public record, as relay keygen prints it, or a list of them.",
  );
}
