import { randomBytes } from "node:crypto";
import { AGENT_SCHEME } from "../agent-id.ts";
import type { KeyRecord } from "./key-file.ts";
import { newOkpKey } from "./okp-keys.ts";

export interface PublicKeys {
  readonly public_key: string;
  readonly sealing_public_key: string | undefined;
}

/** What an issuer signs for, or the relay's operator adds to the keys file. */
export interface PublicRecord extends PublicKeys {
  readonly key_id: string | undefined;
  readonly alg: "ed25519";
  readonly agents: readonly string[];
}

export function publicRecord(agent: string, key_id: string | undefined, publicKeys: PublicKeys): PublicRecord {
  return { key_id, alg: "ed25519", ...publicKeys, agents: [agent] };
}

/** What ids of gateways' keys, and of keys with a credential, begin with. */
const RESERVED = /^(?:gateway|jkt)-/;

/** The agent's name and a random suffix. */
export function newKeyId(agent: string): string {
  const id = `${agent.slice(AGENT_SCHEME.length)}-${randomBytes(3).toString("hex")}`;
  return RESERVED.test(id) ? `agent-${id}` : id;
}

/** A new Ed25519 key, with one to seal to: the content of its key file, and its public record. */
export function newAgentKey(
  agent_id: string,
  key_id: string,
): { readonly file: Extract<KeyRecord, { alg: "ed25519" }>; readonly record: PublicRecord } {
  const [signing, sealing] = [newOkpKey("Ed25519"), newOkpKey("X25519")];
  const [private_key, sealing_key] = [signing.privateKey, sealing.privateKey];
  const publicKeys = { public_key: signing.publicKey, sealing_public_key: sealing.publicKey };
  return {
    file: { agent_id, key_id, alg: "ed25519", private_key, sealing_key },
    record: publicRecord(agent_id, key_id, publicKeys),
  };
}
