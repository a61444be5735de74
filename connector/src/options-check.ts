import { AGENT_ID } from "./agent-id.ts";
import type { ConnectorOptions } from "./options.ts";

/** Throws a TypeError for options that can never work. */
export function checkOptions({ agent, key, credential, seal, sealingKeys = [] }: ConnectorOptions): void {
  if (!AGENT_ID.test(agent)) throw new TypeError("agent must be agent:// and a name");
  if ("private_key" in key || "agent_id" in key) {
    throw new TypeError(
      "key is what a key file holds: give ...(await readKeyFile(path)) of agent-relay-connector/key-file",
    );
  }
  if (!Array.isArray(sealingKeys)) throw new TypeError("sealingKeys must be a list of { publicKey, privateKey }");
  if (key.keyId === undefined && credential === undefined) throw new TypeError("key needs a keyId, or a credential");
  if (seal === "required" && key.alg !== "ed25519") throw new TypeError("seal needs an Ed25519 key");
}
